// Runs whose ranks are processes against the same runs on threads, bit for bit: what is trained, what is saved, what is
// measured and what comes home.
//
// This process computes nothing, so that it may fork. What threads make is made in a process of its own, which is
// forked for it.
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <vector>

#include "braid/base/errors.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/param/memory_account.h"
#include "braid/train/generate.h"
#include "braid/train/measure_scaling.h"
#include "braid/train/run.h"
#include "braid/train/stage_profile.h"
#include "tests/launch/forked.h"
#include "tests/support/shared_array.h"
#include "tests/support/text_folder.h"

namespace braid::launch::tests::run_on_processes_test {
namespace {

constexpr int kSteps = 3, kFewRanks = 4;

// Writes down what it hears where every process sees it.
class Listener final : public train::RunObserver {
 public:
  void on_start(const train::RunStart& start) override {
    first_step[0] = start.first_step;
    process[0] = getpid();
  }
  void on_step(const train::StepReport& report) override {
    losses[report.step - 1] = report.loss;
    for (size_t rank = 0; rank < report.memory.size(); ++rank) peaks[rank] = report.memory[rank].peak_total_bytes;
    if (fails) throw RunError("by design");
  }
  void on_evaluation(const train::Evaluation& evaluation) override { evaluated[0] = evaluation.loss; }
  void on_checkpoint(int64_t, const std::string&) override {}

  std::vector<double> all_losses() const {
    std::vector<double> all;
    for (int step = 0; step < kSteps; ++step) all.push_back(losses[step]);
    return all;
  }

  bool fails = false;
  SharedArray<double> losses{kSteps}, evaluated;
  SharedArray<int64_t> first_step, peaks{kFewRanks};  // peaks by rank, in bytes
  SharedArray<int> process;
};

class RunOnProcesses : public TextFolder {
 protected:
  RunSpec spec(const std::string& out, RanksAs ranks) const {
    RunSpec spec;
    spec.model = {.layers = 4, .heads = 2, .width = 16, .context = 16};
    spec.data.paths = {path("text")};
    spec.train = {.steps = kSteps, .batch = 8, .microbatch = 1, .reduction = Reduction::Reproducible};
    spec.train.eval_sequences = 8;
    spec.train.out = path(out);
    spec.run.ranks = ranks;
    return spec;
  }
  static train::RunEnd run(const RunSpec& spec, Listener& listener) {
    std::filesystem::create_directories(spec.train.out);
    return train::run_training(spec, listener, {[] { return false; }});
  }
  static void run_in_a_process_of_its_own(const RunSpec& spec, Listener& listener) {
    run_forked(1, [&](Communicator&) { run(spec, listener); });
  }
  void expect_same_files(const std::string& step, const std::string& a, const std::string& b) const {
    int num_shards = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path(cat(a, "/", step)))) {
      const std::string file = entry.path().filename();
      if (!file.ends_with(".safetensors")) continue;
      ++num_shards;
      const std::string bytes = content(entry.path());
      EXPECT_FALSE(bytes.empty()) << file;
      EXPECT_TRUE(bytes == content(path(cat(b, "/", step, "/", file)))) << file;
    }
    EXPECT_EQ(num_shards, 4) << "weights and states, on two ranks";
  }
  // Returns the tensors of the last step, whichever mesh saved it.
  std::map<std::string, at::Tensor> tensors_of(const std::string& run) const {
    const std::string step = path(cat(run, "/step-", kSteps));
    std::map<std::string, at::Tensor> tensors;
    std::vector<ckpt::PlacedTensor> places;
    for (const auto& [name, listed] : ckpt::read_manifest(step).tensors) {
      tensors[name] = at::zeros(listed.shape, ckpt::scalar_type(listed.type));
      places.push_back({name, mesh::replicated(listed.shape), tensors[name]});
    }
    ckpt::load_checkpoint(step, places);
    return tensors;
  }
  void expect_same_run(const std::function<void(RunSpec& spec)>& lay_out) const {
    Listener of_threads, of_processes;
    RunSpec threads = spec("threads", RanksAs::Threads), processes = spec("processes", RanksAs::Processes);
    lay_out(threads);
    lay_out(processes);
    run_in_a_process_of_its_own(threads, of_threads);
    const train::RunEnd end = run(processes, of_processes);
    EXPECT_NE(of_processes.process[0], getpid());
    EXPECT_EQ(of_processes.all_losses(), of_threads.all_losses());
    EXPECT_EQ(of_processes.evaluated[0].load(), of_threads.evaluated[0].load());
    expect_same_files(cat("step-", kSteps), "threads", "processes");
    EXPECT_EQ(end.num_steps, kSteps);
    EXPECT_EQ(end.evaluation.loss, of_processes.evaluated[0].load());
    EXPECT_EQ(end.checkpoint, path(cat("processes/step-", kSteps)));
    EXPECT_FALSE(end.interrupted);
    ASSERT_EQ(end.timeline.ranks.size(), 2u);
    for (const auto& spans : end.timeline.ranks) EXPECT_FALSE(spans.empty());
    for (int rank : {0, 1}) EXPECT_GT(of_processes.peaks[rank], 0) << "rank " << rank;
  }
};

TEST_F(RunOnProcesses, data_ranks_train_the_same_bits) {
  expect_same_run([](RunSpec& spec) { spec.mesh.data = 2; });
}
TEST_F(RunOnProcesses, a_pipeline_trains_the_same_bits) {
  expect_same_run([](RunSpec& spec) { spec.mesh.pipe = 2, spec.pipeline.schedule = "1f1b"; });
}
TEST_F(RunOnProcesses, a_zero_bubble_pipeline_trains_the_same_bits) {
  expect_same_run([](RunSpec& spec) { spec.mesh.pipe = 2, spec.pipeline.schedule = "zb-v"; });
}
TEST_F(RunOnProcesses, tensor_ranks_train_the_same_bits) {
  expect_same_run([](RunSpec& spec) { spec.mesh.tensor = 2; });
}
TEST_F(RunOnProcesses, sharded_parameters_train_the_same_bits) {
  expect_same_run([](RunSpec& spec) { spec.mesh.data = 2, spec.sync.zero = 3; });
}

TEST_F(RunOnProcesses, workers_of_parameter_servers_train_the_same_bits) {
  expect_same_run([](RunSpec& spec) {
    spec.mesh.data = 2;
    spec.train.reduction = Reduction::Fast;
    spec.sync.replication = ReplicationKind::ParameterServer;
    spec.sync.servers = 3;
  });
}

TEST_F(RunOnProcesses, a_run_of_threads_goes_on_on_processes) {
  Listener whole, rest;
  RunSpec first = spec("threads", RanksAs::Threads), second = spec("processes", RanksAs::Processes);
  first.train.save_every = 1;
  first.mesh.data = second.mesh.pipe = 2;
  run_in_a_process_of_its_own(first, whole);
  second.train.resume = path("threads/step-1");
  run(second, rest);
  EXPECT_EQ(rest.first_step[0], 1);
  const auto saved = tensors_of("threads"), again = tensors_of("processes");
  ASSERT_EQ(saved.size(), again.size());
  for (const auto& [name, tensor] : saved) EXPECT_TRUE(tensor.equal(again.at(name))) << name;
}

TEST_F(RunOnProcesses, an_error_of_the_observer_comes_home) {
  Listener listener;
  listener.fails = true;
  RunSpec failing = spec("run", RanksAs::Processes);
  failing.mesh.data = 2;
  try {
    run(failing, listener);
    FAIL() << "nothing was thrown";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "by design");
  }
}

TEST_F(RunOnProcesses, parts_of_the_model_are_measured_with_the_same_bytes) {
  param::install_memory_accounting();
  RunSpec measured = spec("run", RanksAs::Processes);
  measured.model.vocab = 257;
  measured.mesh.tensor = 2;
  const std::vector<plan::Unit> on_processes = train::profiled_units(measured, 1);
  EXPECT_EQ(param::memory_use(0).peak_total_bytes, 0) << "of this process";
  ASSERT_EQ(on_processes.size(), 10u);
  measured.run.ranks = RanksAs::Threads;
  run_forked(1, [&](Communicator&) {
    const std::vector<plan::Unit> on_threads = train::profiled_units(measured, 1);
    ASSERT_EQ(on_threads.size(), on_processes.size());
    for (size_t i = 0; i < on_threads.size(); ++i) {
      EXPECT_EQ(on_processes[i].name, on_threads[i].name);
      EXPECT_EQ(on_processes[i].fixed_bytes, on_threads[i].fixed_bytes) << on_threads[i].name;
      EXPECT_EQ(on_processes[i].activation_bytes, on_threads[i].activation_bytes) << on_threads[i].name;
      EXPECT_GT(on_processes[i].forward, 0) << on_threads[i].name;
    }
  });
}

TEST_F(RunOnProcesses, a_measured_partition_is_one_list_for_all_and_a_sample_is_the_same_text) {
  Listener listener;
  RunSpec measured = spec("run", RanksAs::Processes);
  measured.mesh.pipe = 2;
  measured.pipeline.partition = "measured";
  const train::RunEnd end = run(measured, listener);
  EXPECT_NE(end.spec.pipeline.partition.find(','), std::string::npos) << end.spec.pipeline.partition;
  train::GenerateOptions options{.prompt = "quick ", .num_tokens = 8, .ranks = RanksAs::Processes};
  SharedArray<int> process;
  const std::string text = train::generate(end.checkpoint, options, [&](const std::string&) { process[0] = getpid(); });
  EXPECT_FALSE(text.empty());
  EXPECT_NE(process[0], 0);
  EXPECT_NE(process[0], getpid());
  options.ranks = RanksAs::Threads;
  run_forked(1, [&](Communicator&) { EXPECT_EQ(train::generate(end.checkpoint, options, nullptr), text); });
}

TEST_F(RunOnProcesses, scaling_is_measured) {
  RunSpec run = spec("run", RanksAs::Processes);
  run.train.threads = at::get_num_threads() + 1;
  const auto measured = train::measure_scaling(run, {.ranks = {1, 2}, .steps = 1});
  EXPECT_NE(at::get_num_threads(), run.train.threads) << "this thread was a rank";
  ASSERT_EQ(measured.strong.size(), 2u);
  for (const auto& point : measured.strong) EXPECT_GT(point.step_seconds, 0);
}

}  // namespace
}  // namespace braid::launch::tests::run_on_processes_test
