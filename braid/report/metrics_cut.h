// Taking back what metrics.jsonl says of steps that a run goes back behind. It knows which keys of a line say a step
// (docs/metrics_format.md) and nothing else of what is in it.
#pragma once

#include <cstdint>
#include <string>

#include "braid/base/file_system.h"

namespace braid::report {

// Lines taken out of the file.
struct CutLines {
  int64_t later = 0;       // of later steps, and lines between them that name no step
  int64_t unreadable = 0;  // no JSON object: a run died while it wrote
  bool operator==(const CutLines&) const = default;
};

// Leaves the lines that were true after `last_step` steps, byte for byte; CutLines says which lines go. The file is
// replaced by a whole one that is durable, or left as it is; one that would not change is not touched, and one that is
// not there stays away. Throws IoError.
CutLines cut_metrics(const std::string& path, int64_t last_step, FileSystem& files);

// "took 3 lines out of metrics.jsonl: 2 of steps after 4, 1 unreadable"; empty when no line went.
std::string sentence(const CutLines& cut, int64_t last_step);

// Returns the name of the file that an interrupted cut leaves beside `path`.
std::string cut_metrics_name(const std::string& path);

}  // namespace braid::report
