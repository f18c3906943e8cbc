// What a training run writes into its folder while it goes on: config.toml, metrics.jsonl (docs/metrics_format.md) and
// TensorBoard events. It shows nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/report/metrics_file.h"
#include "braid/report/tensorboard_file.h"
#include "braid/train/run.h"

namespace braid {

class RunLog {
 public:
  // Into start.spec.train.out, which is there. Throws IoError, as all that follows.
  explicit RunLog(const RunStart& start);

  void peak(const PeakFlops& peak);
  void step(const StepReport& report);
  void choice(const std::string& choice);
  void evaluation(int64_t step, double validation_loss);
  void replicas(int64_t step, double loss, int64_t num_steps);
  void checkpoint(int64_t step, const std::string& directory);

 private:
  void memory(const StepReport& report);
  void scalars(int64_t step, std::vector<Scalar> values);

  const bool scales_loss_, guesses_, served_, has_nodes_;
  MetricsFile metrics_;
  std::unique_ptr<TensorboardFile> events_;
  std::string memory_written_;  // the last line of memory, without its step
};

}  // namespace braid
