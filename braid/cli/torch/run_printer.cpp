// The lines that a run prints.
#include "braid/cli/torch/run_printer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/terminal.h"
#include "braid/cli/torch/run_entries.h"
#include "braid/cli/torch/run_folder.h"
#include "braid/cli/torch/stop_signals.h"
#include "braid/mesh/device_mesh.h"
#include "braid/report/markup.h"
#include "braid/report/predicted.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/combine.h"
#include "braid/train/rank_model.h"

namespace braid::cli {
namespace {

// Waits until standard output takes a line. Returns false if a signal asks the run to stop meanwhile. mpirun reads no
// output between its signal and the end of its processes.
bool can_print() {
  constexpr int kMilliseconds = 100;
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  while (poll(&out, 1, kMilliseconds) <= 0) {
    if (StopSignals::received() != 0) return false;
  }
  return true;
}

constexpr size_t kMostOfLine = 20'000;  // bytes; lines contain file names

// A bar is redrawn at most ten times a second. Plain lines are printed for the steps that train.log_every logs, and for
// a step that ends 30 s or more after the last line.
constexpr double kPlainSeconds = 30, kRedrawSeconds = 0.1;

report::ProgressPace pace_of(Terminal terminal, const TrainSpec& train) {
  if (terminal == Terminal::Interactive) return {std::max(1, train.steps), kRedrawSeconds};
  return {train.log_every, kPlainSeconds};
}

std::string mesh_text(const MeshSpec& mesh) {
  std::string text = cat("pipe ", mesh.pipe, " x data ", mesh.data, " x tensor ", mesh.tensor);
  if (mesh.context > 1) text += cat(" x context ", mesh.context, " (", mesh.context_parallel, ")");
  return text;
}

std::string model_line(const train::RunStart& start) {
  const ModelSpec& model = start.spec.model;
  const bool freezes = start.num_trained < start.num_params;
  const std::string trained = freezes ? cat(" (", report::grouped(start.num_trained), " trained)") : "";
  return cat("model  ", model.family, ", ", report::grouped(start.num_params), " ",
             noun_of(start.num_params, "parameter"), trained, ", ", counted(model.layers, "layer"), " x ", model.width,
             " wide, vocabulary ", model.vocab, " padded to ", start.padded_vocab);
}

std::string data_line(const train::RunStart& start) {
  return cat("data   ", report::grouped(start.num_documents), " ", noun_of(start.num_documents, "document"), ", ",
             report::grouped(start.train_tokens), " ", noun_of(start.train_tokens, "token"), " to train on, ",
             report::grouped(start.validation_tokens), " held out");
}

// Returns "8 microbatches", or "12 + 4 microbatches" for data ranks with unequal batch shares.
std::string microbatches_text(const RunSpec& spec) {
  if (spec::has_equal_shares(spec.mesh)) return counted(spec::num_microbatches(spec, 0), "microbatch");
  std::vector<std::string> counts;
  for (int rank = 0; rank < spec.mesh.data; ++rank) counts.push_back(cat(spec::num_microbatches(spec, rank)));
  return joined(counts, " + ") + " microbatches";
}

std::string mesh_line(const train::RunStart& start) {
  const int ranks = mesh::DeviceMesh(start.spec.mesh).num_ranks(), servers = num_server_ranks(start.spec.sync);
  return cat("mesh   ", mesh_text(start.spec.mesh), " = ", counted(ranks, "rank"), " of ",
             counted(start.threads, "thread"), servers > 0 ? " + " + counted(servers, "server") : "", ", ",
             start.spec.pipeline.schedule, " with ", microbatches_text(start.spec), " of ", start.spec.train.microbatch,
             " x ", counted(start.spec.model.context, "token"));
}

std::string in_milliseconds(const std::vector<double>& seconds) {
  std::vector<std::string> all;
  for (const double one : seconds) all.push_back(fixed(1e3 * one, 2));
  return joined(all);
}

std::string cut_line(const train::RunStart& start, const plan::Partition& cut) {
  return cat("cut    ", start.spec.pipeline.partition, " blocks, measured: stages take ",
             in_milliseconds(cut.stage_seconds), " ms per microbatch, ranks ", in_milliseconds(cut.rank_seconds),
             " ms");
}

std::string peak_source(const train::PeakFlops& peak, DType dtype) {
  switch (peak.source) {
    case train::PeakSource::Given:
      return "from train.peak_flops";
    case train::PeakSource::Measured:
      return cat("a ", peak.size, " x ", peak.size, " product in ", dtype);
    case train::PeakSource::Step:
      break;
  }
  return "reached by a step, more than was known before";
}

double peak_of(const train::StepReport& report) {
  double peak = 0;
  for (const param::MemoryUse& use : report.memory) peak = std::max(peak, static_cast<double>(use.peak_total_bytes));
  return peak;
}

report::Progress progress_of(const train::StepReport& report, int64_t steps) {
  report::Progress progress;
  progress.step = report.step;
  progress.steps = steps;
  progress.loss = report.loss;
  progress.lr = report.learning_rate;
  progress.grad_norm = report.grad_norm;
  progress.tokens_per_second = report.tokens_per_second;
  progress.utilisation = report.utilisation;
  progress.bubble_fraction = report.bubble_fraction;
  progress.peak_bytes = peak_of(report);
  progress.seconds_per_step = report.seconds;
  return progress;
}

// Returns ", 0.6123 per byte"; empty if tokens are bytes, since the two losses then differ only by ends of documents.
std::string per_byte(const train::Evaluation& evaluation, const RunSpec& spec) {
  if (spec.data.tokenizer == kByteTokenizer || std::isnan(evaluation.loss_per_byte)) return "";
  return cat(", ", fixed(evaluation.loss_per_byte, 4), " per byte");
}

}  // namespace

RunPrinter::RunPrinter(std::ostream& out, Terminal terminal, Opening opening)
    : out_(out), terminal_(terminal), opening_(std::move(opening)) {}

void RunPrinter::on_start(const train::RunStart& start) {
  start_ = start;
  pace_ = pace_of(terminal_, start.spec.train);
  for (const std::string& done : opening_(start.first_step)) note(done);
  log_ = std::make_unique<RunLog>(start);
  print_line(model_line(start));
  print_line(data_line(start));
  print_line(mesh_line(start));
  if (start.measured_partition) print_line(cut_line(start, *start.measured_partition));
  for (const std::string& text : spec::notes(start.spec)) note(text);
  if (start.first_step > 0) print_line(cat("resumed at step ", start.first_step, " from ", start.spec.train.resume));
}

void RunPrinter::on_peak(const train::PeakFlops& peak) {
  log_->peak(peak);
  if (peak.source == train::PeakSource::Step && std::exchange(told_of_fast_step_, true)) return;
  const int ranks = mesh::DeviceMesh(start_.spec.mesh).num_ranks();
  const DType of_run = start_.spec.train.dtype;
  const DType dtype = peak.type == train::scalar_type(of_run) ? of_run : DType::Float32;
  print_line(cat("peak   ", counted(ranks, "rank"), " x ", report::flops_text(peak.per_rank), ", ",
                 peak_source(peak, dtype), "; mfu is measured against it"));
}

void RunPrinter::on_prediction(const plan::Prediction& prediction) {
  log_->prediction(prediction);
  print_line(cat("predict step ", report::short_number(prediction.step_seconds()), " s, bubble ",
                 report::percent(prediction.bubble), ", ", human_bytes(prediction.sync_bytes), " of gradients sent, ",
                 human_bytes(static_cast<double>(prediction.most_bytes())), " on the fullest rank"));
}

void RunPrinter::on_step(const train::StepReport& report) {
  log_->step(report);
  if (!report.spike.empty()) print_line(cat("skip   step ", report.step, ": ", report.spike));
  if (!pace_->shows(report.step, start_.spec.train.steps, now_seconds())) return;
  const report::Progress progress = progress_of(report, start_.spec.train.steps);
  if (terminal_ == Terminal::Interactive) {
    if (!can_print()) return;
    out_ << "\r\033[K" << report::progress_bar(progress, terminal_width()) << std::flush;
    bar_is_open_ = true;
  } else {
    print_line(report::progress_line(progress));
  }
}

void RunPrinter::on_choice(const std::string& choice) {
  log_->choice(choice);
  print_line("chose  " + choice);
}

void RunPrinter::on_evaluation(const train::Evaluation& evaluation) {
  log_->evaluation(evaluation);
  print_line(cat("step ", evaluation.step, "  validation loss ", fixed(evaluation.loss, 4),
                 per_byte(evaluation, start_.spec)));
}

// Looks in the run's own folder, to whose checkpoints it rolls back, and beside the checkpoint that it resumed from.
bool RunPrinter::knows_evaluation(int64_t step) {
  const TrainSpec& train = start_.spec.train;
  return evaluations_in(train.out).contains(step) || (!train.resume.empty() && has_evaluation(train.resume, step));
}

std::map<int64_t, double> RunPrinter::recorded_evaluations() { return evaluations_in(start_.spec.train.out); }

void RunPrinter::on_replicas(int64_t step, double loss, int64_t num_steps) {
  log_->replicas(step, loss, num_steps);
  print_line(cat("step ", step, "  loss of all replicas ", fixed(loss, 4), " over ", counted(num_steps, "step")));
}

void RunPrinter::on_lost_worker(const train::LostWorker& lost) {
  log_->lost_worker(lost);
  print_line(cat("lost   worker ", lost.worker, ", whose process has died; after step ", lost.step,
                 " the others go on with its samples, and with ", counted(lost.num_taken, "share"),
                 " of earlier steps"));
}

void RunPrinter::on_rollback(int64_t step, const std::string& why) {
  log_->rollback(step, why);
  print_line("back   " + why);
}

void RunPrinter::on_checkpoint(int64_t step, const std::string& directory) {
  log_->checkpoint(step, directory);
  print_line(cat("step ", step, "  weights and optimizer in ", directory));
}

void RunPrinter::print_end(const train::RunEnd& end, double measured_bubble, double ideal_bubble) {
  if (!std::isnan(end.evaluation.loss)) {
    const std::string beside_bigrams = std::isnan(end.bigram_entropy)
                                           ? ""
                                           : cat(", ", end.evaluation.loss < end.bigram_entropy ? "below" : "not below",
                                                 " the text's bigram entropy of ", fixed(end.bigram_entropy, 4));
    print_line(cat("validation loss ", fixed(end.evaluation.loss, 4), " nats per token",
                   per_byte(end.evaluation, end.spec), beside_bigrams));
  }
  if (end.timeline.ranks.empty() || end.timeline.makespan() == 0) return;
  print_line(cat("bubble of the last step: ", fixed(100 * measured_bubble, 1), " % measured, ",
                 fixed(100 * ideal_bubble, 1), " % ideal; drawn in ", end.spec.train.out, "/", kTimelineName));
  const auto [read, written] = end.timeline.bytes_on_disk();
  if (read + written > 0) {
    print_line(cat("disk in the last step: all ranks read ", human_bytes(read), " and wrote ", human_bytes(written),
                   "; each transfer is in ", end.spec.train.out, "/", kMovesName));
  }
  print_prediction(end.spec.train.out);
}

// Reads the steps from the run's folder, because on_step() may have been called in another process.
void RunPrinter::print_prediction(const std::string& folder) {
  const std::vector<report::PredictedRow> rows = report::predicted_rows(record_of(folder));
  if (rows.empty()) return;
  std::istringstream lines(report::predicted_table(rows));
  for (std::string line; std::getline(lines, line);) print_line(line);
}

void RunPrinter::print_interruption(const train::RunEnd& end, const std::string& signal, const std::string& command) {
  print_line(cat("interrupted by ", signal, ": stopped cleanly after step ", end.num_steps,
                 command.empty() ? ", the last; all is saved" : "; to resume from it:"));
  if (!command.empty()) print_shown(command);
}

void RunPrinter::print_line(const std::string& line) { print_shown(printable(line, kMostOfLine)); }

void RunPrinter::print_shown(const std::string& line) {
  if (!can_print()) return;
  if (bar_is_open_) out_ << "\n";
  bar_is_open_ = false;
  out_ << line << std::endl;
}

}  // namespace braid::cli
