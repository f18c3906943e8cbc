// What a training run shows and writes while it goes on: a progress bar on a terminal, plain lines otherwise, and a
// line of metrics.jsonl for everything that happens. It knows nothing of ranks.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "braid/report/metrics_file.h"
#include "braid/report/progress.h"
#include "braid/train/run.h"

namespace braid {

enum class Terminal { Interactive, Plain };

class RunPrinter final : public RunObserver {
 public:
  // `out` outlives this. Makes spec.train.out when the run starts.
  RunPrinter(std::ostream& out, Terminal terminal);

  void on_start(const RunStart& start) override;
  void on_step(const StepReport& report) override;
  void on_evaluation(int64_t step, double validation_loss) override;
  void on_checkpoint(int64_t step, const std::string& directory) override;
  // The closing lines; `ideal_bubble` is the simulator's.
  void print_end(const RunEnd& end, double measured_bubble, double ideal_bubble);

 private:
  void print_line(const std::string& line);
  bool shows(int64_t step) const;

  std::ostream& out_;
  Terminal terminal_;
  std::unique_ptr<MetricsFile> metrics_;
  RunStart start_;
  bool bar_is_open_ = false;
};

}  // namespace braid
