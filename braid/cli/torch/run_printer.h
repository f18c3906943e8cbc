// Prints the progress of a training run: a bar on a terminal, otherwise a line for every step that train.log_every
// logs. Everything is also written to the run's log. The summary after the run is made from the run's result, because
// notifications may have arrived in another process (run.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "braid/cli/torch/run_log.h"
#include "braid/report/progress.h"
#include "braid/train/run.h"

namespace braid::cli {

enum class Terminal { Interactive, Plain };

class RunPrinter final : public train::RunObserver {
 public:
  // Called when a run starts after `first_step` steps, before anything is written. Returns sentences to print.
  using Opening = std::function<std::vector<std::string>(int64_t first_step)>;

  // REQUIRES: `out` outlives this, and spec.train.out exists when the run starts.
  RunPrinter(std::ostream& out, Terminal terminal, Opening opening);

  void note(const std::string& text) { print_line("note   " + text); }

  void on_start(const train::RunStart& start) override;
  void on_peak(const train::PeakFlops& peak) override;
  void on_prediction(const plan::Prediction& prediction) override;
  void on_comparison(const std::vector<plan::ParallelismRow>& rows) override { log_->comparison(rows); }
  void on_step(const train::StepReport& report) override;
  void on_slow_path(const std::string& why) override { note(why); }
  void on_choice(const std::string& choice) override;
  void on_evaluation(const train::Evaluation& evaluation) override;
  bool knows_evaluation(int64_t step) override;
  std::map<int64_t, double> recorded_evaluations() override;
  void on_replicas(int64_t step, double loss, int64_t num_steps) override;
  void on_lost_worker(const train::LostWorker& lost) override;
  void on_rollback(int64_t step, const std::string& why) override;
  void on_checkpoint(int64_t step, const std::string& directory) override;
  // Prints how a signal ended the run, and `command`, which resumes it (resume_command.h). `command` is empty if all
  // steps are done.
  void print_interruption(const train::RunEnd& end, const std::string& signal, const std::string& command);
  // Prints the closing lines. `ideal_bubble` is the simulator's result.
  void print_end(const train::RunEnd& end, double measured_bubble, double ideal_bubble);

 private:
  void print_prediction(const std::string& folder);
  void print_line(const std::string& line);   // escapes and shortens the line with printable()
  void print_shown(const std::string& line);  // prints the line unchanged

  std::ostream& out_;
  Terminal terminal_;
  Opening opening_;
  std::unique_ptr<RunLog> log_;
  train::RunStart start_;
  std::optional<report::ProgressPace> pace_;
  bool bar_is_open_ = false, told_of_fast_step_ = false;
};

}  // namespace braid::cli
