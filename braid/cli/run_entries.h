// The names of a run's own files in its folder, checkpoints aside.
#pragma once

#include <string>
#include <vector>

namespace braid {

inline constexpr const char* kRunLock = "run.lock";
inline constexpr const char* kMetricsName = "metrics.jsonl";
inline constexpr const char* kRunJob = "run.job";
// Files that are replaced as wholes, and removed when a run overwrites another.
inline constexpr const char* kReplacedFiles[] = {"timeline.svg", "trace.json", "sample.txt", "report.html", kRunJob};

// The event files that runs have written for TensorBoard.
std::vector<std::string> event_files(const std::string& run);

// Returns a sentence for each entry of the folder `run` that keeps a run from writing its files: a link where metrics
// or events are appended, a folder under the name of a file. Links under other names are replaced.
std::vector<std::string> faulty_entries(const std::string& run);

}  // namespace braid
