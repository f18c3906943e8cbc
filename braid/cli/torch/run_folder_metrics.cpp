// Reads the metrics that earlier runs left in a run's folder.
#include <algorithm>
#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/torch/run_entries.h"
#include "braid/cli/torch/run_folder.h"
#include "braid/report/run_record.h"

namespace braid::cli {
namespace {

// Describes the memory of the rank that held most, with the peak of each category; empty if no step was reported.
std::string held_by_fullest(const report::RunRecord& record) {
  if (record.peak_memory.empty()) return "";
  const auto fullest = std::ranges::max_element(record.peak_memory) - record.peak_memory.begin();
  std::vector<std::string> parts;
  for (const auto& [category, by_rank] : record.memory) {
    const double bytes = fullest < std::ssize(by_rank) ? by_rank[static_cast<size_t>(fullest)] : 0;
    if (bytes > 0) parts.push_back(cat(category, " ", human_bytes(bytes)));
  }
  return cat("; up to step ", record.num_steps(), " rank ", fullest, " had held ",
             human_bytes(record.peak_memory[static_cast<size_t>(fullest)]), " at most (", joined(parts), ")");
}

}  // namespace

// Called before the metrics are removed. The sentence has no memory if they cannot be read.
std::string RunFolder::killed_run_text() const {
  if (path_kind((std::filesystem::path(path_) / kRunUnderway).string()) == PathKind::Nothing) return "";
  const std::string text = "the run before this one was killed, or its host or disk failed";
  try {
    return text + held_by_fullest(record_of(path_));
  } catch (const IoError&) {
    return text;
  }
}

report::RunRecord record_of(const std::string& run) {
  const std::string metrics = std::filesystem::path(run) / kMetricsName;
  return path_kind(metrics) == PathKind::Nothing ? report::RunRecord() : report::read_run_record(metrics);
}

std::map<int64_t, double> evaluations_in(const std::string& run) {
  std::map<int64_t, double> losses;
  for (const report::Point& point : record_of(run).validation) losses[static_cast<int64_t>(point.x)] = point.y;
  return losses;
}

}  // namespace braid::cli
