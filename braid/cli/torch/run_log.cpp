// Writes the keys of metrics.jsonl and the tags of TensorBoard events.
#include "braid/cli/torch/run_log.h"

#include <sys/utsname.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/host.h"
#include "braid/base/host_facts.h"
#include "braid/base/output_file.h"
#include "braid/base/text.h"
#include "braid/cli/torch/run_entries.h"
#include "braid/mesh/device_mesh.h"
#include "braid/report/metrics_file.h"
#include "braid/spec/describe.h"
#include "braid/spec/trained.h"

namespace braid::cli {
namespace {

// Returns the seconds since 1970.
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc_text(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

// Returns names and values: started (UTC), host, system, processor, cores, memory, braid, compiler. Values that the
// system does not give are left out.
std::vector<std::pair<std::string, std::string>> environment_facts() {
  utsname system{};
  uname(&system);
  const HostFacts here = host_facts();
  std::vector<std::pair<std::string, std::string>> facts{
      {"started", utc_text(wall_seconds())},
      {"host", here.host},
      {"system", cat(system.sysname, " ", system.release, " ", system.machine)},
      {"processor", here.processor},
      {"cores", cat(here.cores)},
      {"memory", here.memory_bytes > 0 ? human_bytes(static_cast<double>(here.memory_bytes)) : ""},
      {"braid", BRAID_VERSION},
      {"compiler", cat("g++ ", __VERSION__)},
  };
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

report::MetricsLine line_of(std::string_view kind) { return std::move(report::MetricsLine().add("kind", kind)); }

std::string metrics_path(const RunSpec& spec) { return cat(spec.train.out, "/", kMetricsName); }

report::MetricsLine object_of(const std::vector<std::pair<std::string, double>>& numbers) {
  report::MetricsLine line;
  for (const auto& [name, value] : numbers) line.add(name, value);
  return line;
}

report::MetricsLine start_line(const train::RunStart& start) {
  report::MetricsLine environment;
  for (const auto& [name, value] : environment_facts()) environment.add(name, std::string_view(value));
  environment.add("libtorch", std::string_view(TORCH_VERSION));
  report::MetricsLine line = line_of("run");
  line.add("parameters", start.num_params).add("trained_parameters", start.num_trained);
  line.add("train_tokens", start.train_tokens).add("validation_tokens", start.validation_tokens);
  line.add("bigram_entropy", start.bigram_entropy).add("first_step", start.first_step);
  line.add("ranks", mesh::DeviceMesh(start.spec.mesh).num_ranks()).add("threads", start.threads);
  if (const int servers = num_server_ranks(start.spec.sync); servers > 0) line.add("servers", servers);
  line.add("model_flops_per_token", spec::model_flops_per_token(start.spec));
  return line.add("environment", environment);
}

std::vector<double> peaks_of(const train::StepReport& report) {
  std::vector<double> peaks;
  for (const param::MemoryUse& use : report.memory) peaks.push_back(static_cast<double>(use.peak_total_bytes));
  return peaks;
}

std::string source_of(const train::PeakFlops& peak) {
  switch (peak.source) {
    case train::PeakSource::Given:
      return "given";
    case train::PeakSource::Measured:
      return "measured";
    case train::PeakSource::Step:
      break;
  }
  return "step";
}

// Returns {"parameters":[rank 0's, rank 1's],"gradients":...}.
report::MetricsLine category_peaks(const train::StepReport& report) {
  report::MetricsLine line;
  for (int c = 0; c < param::kNumMemoryCategories; ++c) {
    std::vector<double> peaks;
    for (const param::MemoryUse& use : report.memory) peaks.push_back(static_cast<double>(use.peak_bytes[c]));
    line.add(param::text(static_cast<param::MemoryCategory>(c)), peaks);
  }
  return line;
}

}  // namespace

RunLog::RunLog(const train::RunStart& start) : spec_(start.spec) {
  PosixFileSystem files;
  write_file(cat(spec_.train.out, "/", kConfigName), spec::to_toml(spec_), files);
  std::error_code ignored;  // an earlier run's files in this folder would be taken for this run's
  for (const char* name : {kTraceName, kMovesName}) {
    std::filesystem::remove(cat(spec_.train.out, "/", name), ignored);
  }
  open(start.first_step);
  metrics_->write(start_line(start));
}

void RunLog::open(int64_t first_step) {
  metrics_.emplace(metrics_path(spec_));
  events_ = report::new_tensorboard_file(spec_.train.out + "/tensorboard", host_name(), wall_seconds(), first_step);
}

void RunLog::rollback(int64_t step, const std::string& why) {
  PosixFileSystem files;
  metrics_.reset();
  report::cut_metrics(metrics_path(spec_), step, files);
  open(step);
  metrics_->write(line_of("rollback").add("step", step).add("text", std::string_view(why)));
  memory_written_.clear();
}

void RunLog::peak(const train::PeakFlops& peak) {
  report::MetricsLine line = line_of("peak");
  line.add("flops_per_second", peak.per_rank);
  line.add("source", std::string_view(source_of(peak)));
  metrics_->write(line.add("size", peak.size));
}

void RunLog::prediction(const plan::Prediction& prediction) {
  report::MetricsLine line = line_of("prediction"), seconds;
  for (const auto& [name, part] : plan::kStepParts) seconds.add(name, prediction.seconds.*part);
  line.add("step_seconds", prediction.step_seconds()).add("seconds", seconds);
  line.add("bubble_fraction", prediction.bubble).add("sync_bytes", prediction.sync_bytes).add("mfu", prediction.mfu);
  if (prediction.disk_bytes > 0) line.add("disk_bytes", prediction.disk_bytes);
  report::MetricsLine categories;
  const auto add = [&](const char* category, int64_t plan::RankMemory::*bytes) {
    std::vector<double> ranks;
    for (const plan::RankMemory& rank : prediction.memory) ranks.push_back(static_cast<double>(rank.*bytes));
    categories.add(category, ranks);
  };
  add("parameters", &plan::RankMemory::parameters);
  add("gradients", &plan::RankMemory::gradients);
  add("optimizer", &plan::RankMemory::moments);
  add("activations", &plan::RankMemory::activations);
  add("communication", &plan::RankMemory::communication);
  if (prediction.fullest().snapshots > 0) add("snapshots", &plan::RankMemory::snapshots);
  std::vector<double> peaks;
  for (const plan::RankMemory& rank : prediction.memory) peaks.push_back(static_cast<double>(rank.total()));
  if (prediction.server_bytes > 0) {
    peaks.push_back(static_cast<double>(prediction.server_bytes));
    categories.add("servers", std::vector<double>{peaks.back()});
  }
  metrics_->write(line.add("memory_bytes", categories).add("peak_memory_bytes", peaks));
}

void RunLog::comparison(const std::vector<plan::ParallelismRow>& rows) {
  report::MetricsLine line = line_of("comparison"), ways;
  for (const plan::ParallelismRow& row : rows) {
    report::MetricsLine way;
    way.add("copied", std::string_view(row.copied)).add("split", std::string_view(row.split));
    way.add("sent", std::string_view(row.when)).add("growth", std::string_view(row.growth));
    way.add("sent_bytes", row.sent_bytes).add("sent_bytes_on_twice", row.sent_bytes_on_twice);
    if (row.possible) {
      way.add("peak_memory_bytes", static_cast<double>(row.prediction.fullest().total()));
      way.add("step_seconds", row.prediction.step_seconds());
    }
    ways.add(row.name, way);
  }
  metrics_->write(line.add("ways", ways));
}

void RunLog::step(const train::StepReport& report) {
  ++sent_.steps;
  sent_.bytes += report.sync_bytes;
  sent_.across_hosts += report.bytes_across_hosts;
  sent_.on_disk += report.disk_bytes;
  const bool logged = report.step % spec_.train.log_every == 0 || report.step == spec_.train.steps;
  if (!logged && report.spike.empty()) return;
  report::MetricsLine line = line_of("step");
  line.add("step", report.step).add("loss", report.loss);
  line.add("learning_rate", report.learning_rate).add("grad_norm", report.grad_norm);
  line.add("layer_grad_norms", object_of(report.layer_grad_norms));
  if (spec_.train.dtype == DType::Float16) line.add("loss_scale", report.loss_scale);
  if (spec_.train.dtype == DType::Float16 || spec_.train.on_spike == OnSpike::Skip) line.add("skipped", report.skipped);
  if (!report.spike.empty()) line.add("spike", std::string_view(report.spike));
  if (!report.auxiliary_losses.empty()) line.add("auxiliary_losses", report.auxiliary_losses);
  if (report.staleness > 0) line.add("staleness", report.staleness);
  if (spec_.sync.replication == ReplicationKind::ParameterServer)
    line.add("server_wait_seconds", report.server_wait_seconds);
  line.add("seconds", report.seconds).add("tokens_per_second", report.tokens_per_second);
  line.add("mfu", report.utilisation);
  line.add("bubble_fraction", report.bubble_fraction).add("sync_bytes", sent_.bytes / sent_.steps);
  if (sent_.across_hosts > 0) line.add("bytes_across_hosts", sent_.across_hosts / sent_.steps);
  if (sent_.on_disk > 0) line.add("disk_bytes", sent_.on_disk / sent_.steps);
  sent_ = {};
  line.add("sample_hash", std::string_view(cat(std::hex, report.sample_hash)));
  const std::vector<double> peaks = peaks_of(report);
  metrics_->write(line.add("peak_memory_bytes", peaks));
  memory(report);
  scalars(report.step, {{"loss/train", report.loss},
                        {"optimizer/learning_rate", report.learning_rate},
                        {"optimizer/grad_norm", report.grad_norm},
                        {"speed/tokens_per_second", report.tokens_per_second},
                        {"speed/mfu", report.utilisation},
                        {"speed/bubble_fraction", report.bubble_fraction},
                        {"memory/peak_bytes", *std::max_element(peaks.begin(), peaks.end())}});
}

// Peaks settle after a few steps, so a line is written only when one has grown.
void RunLog::memory(const train::StepReport& report) {
  const report::MetricsLine peaks = category_peaks(report);
  if (peaks.text() == memory_written_) return;
  memory_written_ = peaks.text();
  metrics_->write(line_of("memory").add("step", report.step).add("peak_bytes", peaks));
}

void RunLog::choice(const std::string& choice) {
  metrics_->write(line_of("choice").add("text", std::string_view(choice)));
}

void RunLog::evaluation(const train::Evaluation& evaluation) {
  report::MetricsLine line = line_of("evaluation");
  line.add("step", evaluation.step).add("validation_loss", evaluation.loss);
  metrics_->write(line.add("validation_loss_per_byte", evaluation.loss_per_byte));
  scalars(evaluation.step, {{"loss/validation", evaluation.loss}});
}

void RunLog::lost_worker(const train::LostWorker& lost) {
  report::MetricsLine line = line_of("lost_worker");
  metrics_->write(line.add("step", lost.step).add("worker", int64_t{lost.worker}).add("shares_taken", lost.num_taken));
}

void RunLog::replicas(int64_t step, double loss, int64_t num_steps) {
  metrics_->write(line_of("replicas").add("step", step).add("loss", loss).add("num_steps", num_steps));
}

void RunLog::checkpoint(int64_t step, const std::string& directory) {
  metrics_->write(line_of("checkpoint").add("step", step).add("directory", std::string_view(directory)));
}

void RunLog::scalars(int64_t step, std::vector<report::Scalar> values) {
  events_->write({wall_seconds(), step, std::move(values)});
}

}  // namespace braid::cli
