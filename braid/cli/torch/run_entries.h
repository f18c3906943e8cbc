// The names of a run's own files in its folder, except checkpoints.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::cli {

inline constexpr const char* kRunLock = "run.lock";
inline constexpr const char* kConfigName = "config.toml";
inline constexpr const char* kMetricsName = "metrics.jsonl";
inline constexpr const char* kTimelineName = "timeline.svg";
inline constexpr const char* kTraceName = "trace.json";
inline constexpr const char* kMovesName = "moves.csv";
inline constexpr const char* kSampleName = "sample.txt";
inline constexpr const char* kReportName = "report.html";
inline constexpr const char* kRunJob = "run.job";
inline constexpr const char* kFailureName = "failure.txt";
inline constexpr const char* kRunUnderway = "run.underway";  // exists while a run trains, and after one was killed
// Files that are replaced as a whole, and removed when a run overwrites another.
inline constexpr const char* kReplacedFiles[] = {kTimelineName, kTraceName, kMovesName,   kSampleName,
                                                 kReportName,   kRunJob,    kFailureName, kRunUnderway};

// Returns the event files for TensorBoard in the folder `run`.
std::vector<std::string> event_files(const std::string& run);

// Returns a sentence for each entry of the folder `run` that prevents a run from writing its files. Such entries are a
// link where metrics or events are appended, a folder under the name of a file, and something else under the name of a
// checkpoint. Links under other names are replaced.
std::vector<std::string> faulty_entries(const std::string& run);

// Throws ConfigError if train.out lies in a folder of data.paths and data.include matches the run's own files: they
// would become documents.
void refuse_out_in_data(const RunSpec& spec);

}  // namespace braid::cli
