// metrics.jsonl read back: curves, memory, the environment. Format: docs/metrics_format.md.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/report/chart_axis.h"

namespace braid::report {

// One way of sharing a run out, as a `comparison` line has it.
struct ComparedWay {
  std::string name;
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;
};

struct RunRecord {
  std::map<std::string, double> start;                              // the numbers of the last line that begins a run
  std::vector<std::pair<std::string, std::string>> environment;     // of the same line, in its order
  std::vector<int64_t> first_steps;                                 // of every start, in the order of the file
  std::map<std::string, Series> steps;                              // every numeric key of step lines, over the step
  std::vector<std::pair<std::string, Series>> layer_grad_norms;     // by layer, in model order
  Series validation, validation_per_byte;                           // nats per token, and per byte of text
  std::vector<std::pair<int64_t, std::string>> checkpoints;         // step, folder
  double peak_flops = 0;                                            // of one rank; 0: not known
  std::string peak_source;                                          // "given", "measured" or "step"
  std::vector<std::pair<std::string, std::vector<double>>> memory;  // by category, bytes of each rank
  std::vector<double> peak_memory;                                  // bytes of each rank, the most at once
  // The prediction of the last start, if it made one: its numbers by key, and bytes of each rank of pipe by category,
  // and in all.
  std::map<std::string, double> prediction;
  std::vector<std::pair<std::string, std::vector<double>>> predicted_memory;
  std::vector<double> predicted_peak;
  std::vector<ComparedWay> compared;  // in the order of the file
  int64_t num_damaged_lines = 0;

  // The last value of a curve, or NaN.
  double last(const std::string& key) const;
  int64_t num_steps() const;  // the last step of all
  // The points of a curve behind the first `skipped` steps of the last start: earlier starts may have had other ranks.
  Series since_last_start(const std::string& key, int64_t skipped = 0) const;
};

// Reads the lines of metrics.jsonl. If a run restarts after step k, earlier lines of later steps are dropped. Lines
// that are no JSON objects (a run died while it wrote) are counted and skipped; unknown keys and kinds are ignored.
RunRecord read_run_record(std::istream& lines);
// The same of a file. Throws IoError for one that cannot be read, is no regular file or has a line above 16 MiB.
RunRecord read_run_record(const std::string& path);

}  // namespace braid::report
