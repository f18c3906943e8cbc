// Reads metrics.jsonl back: curves, memory, the environment. Format: docs/metrics_format.md.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/report/chart_axis.h"

namespace braid::report {

// One layout of a run over ranks, from a `comparison` line.
struct ComparedWay {
  std::string name;
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;
};

struct RunRecord {
  std::map<std::string, double> start;                           // numbers of the last line that begins a run
  std::vector<std::pair<std::string, std::string>> environment;  // texts of the same line, in its order
  std::vector<int64_t> first_steps;                              // first steps of all starts, in the order of the file
  std::map<std::string, Series> steps;  // curves over the step of all numeric keys of step lines
  std::vector<std::pair<std::string, Series>> layer_grad_norms;     // curves by layer, in model order
  Series validation, validation_per_byte;                           // in nats per token, and in nats per byte of text
  std::vector<std::pair<int64_t, std::string>> checkpoints;         // pairs of step and folder
  double peak_flops = 0;                                            // peak FLOP/s of one rank; 0: unknown
  std::string peak_source;                                          // "given", "measured" or "step"
  std::vector<std::pair<std::string, std::vector<double>>> memory;  // bytes of each rank, by category
  std::vector<double> peak_memory;                                  // largest total bytes in use at once, by rank
  // The prediction of the last start, if it made one: its numbers by key, the bytes of each pipeline rank by category,
  // and the total bytes of each pipeline rank.
  std::map<std::string, double> prediction;
  std::vector<std::pair<std::string, std::vector<double>>> predicted_memory;
  std::vector<double> predicted_peak;
  std::vector<ComparedWay> compared;  // layouts in the order of the file
  int64_t num_damaged_lines = 0;

  // Returns the last value of a curve, or NaN.
  double last(const std::string& key) const;
  int64_t num_steps() const;  // returns the last step of all curves
  // Returns the points of a curve after the first `skipped` steps of the last start. Earlier starts may have had other
  // ranks.
  Series since_last_start(const std::string& key, int64_t skipped = 0) const;
};

// Reads the lines of metrics.jsonl. If a run restarts after step k, earlier lines about later steps are dropped. Lines
// that are no JSON objects (a run died while it wrote) are counted and skipped. Unknown keys and kinds are ignored.
RunRecord read_run_record(std::istream& lines);
// Reads a file. Throws IoError if it cannot be read, is not a regular file, or has a line above 16 MiB.
RunRecord read_run_record(const std::string& path);

}  // namespace braid::report
