// The files that a training run writes continuously: config.toml, metrics.jsonl (docs/metrics_format.md) and
// TensorBoard events.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/report/metrics_file.h"
#include "braid/report/tensorboard_file.h"
#include "braid/train/run.h"

namespace braid::cli {

class RunLog {
 public:
  // Opens the files in start.spec.train.out. config.toml is replaced before any other file is opened. All methods throw
  // IoError. REQUIRES: the folder exists.
  explicit RunLog(const train::RunStart& start);

  void peak(const train::PeakFlops& peak);
  void prediction(const plan::Prediction& prediction);
  void comparison(const std::vector<plan::ParallelismRow>& rows);
  // Called for every step. Writes the steps that train.log_every divides, and the last one.
  void step(const train::StepReport& report);
  void choice(const std::string& choice);
  void evaluation(const train::Evaluation& evaluation);
  void lost_worker(const train::LostWorker& lost);
  void replicas(int64_t step, double loss, int64_t num_steps);
  void checkpoint(int64_t step, const std::string& directory);
  // Removes the records of steps after `step`.
  void rollback(int64_t step, const std::string& why);

 private:
  void open(int64_t first_step);
  void memory(const train::StepReport& report);
  void scalars(int64_t step, std::vector<report::Scalar> values);

  struct SentBytes {
    int64_t steps = 0, bytes = 0, across_hosts = 0, on_disk = 0;
  };

  const RunSpec spec_;
  std::optional<report::MetricsFile> metrics_;
  std::unique_ptr<report::TensorboardFile> events_;
  std::string memory_written_;  // last line about memory, without its step
  SentBytes sent_;              // bytes sent since the last line about a step
};

}  // namespace braid::cli
