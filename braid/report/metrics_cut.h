// Taking back what metrics.jsonl says of steps that a run goes back behind. It knows which keys of a line say a step
// (docs/metrics_format.md) and nothing else of what is in it.
#pragma once

#include <cstdint>
#include <string>

#include "braid/base/file_system.h"

namespace braid {

// Leaves the lines that were true after `last_step` steps, byte for byte: those of later steps go, with the lines
// between them that name no step, and so do lines that are no JSON object (a run died while it wrote). The file is
// replaced by a whole one that is durable, or left as it is; one that would not change is not touched, and one that is
// not there stays away. Returns the number of lines that went. Throws IoError.
int64_t cut_metrics(const std::string& path, int64_t last_step, FileSystem& files);

// What a cut that was stopped leaves beside the file.
std::string cut_metrics_name(const std::string& path);

}  // namespace braid
