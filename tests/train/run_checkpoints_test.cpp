// Which checkpoints a run leaves, across restarts too, and those that are written while it goes on.
#include "braid/train/run_checkpoints.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/train/run_data.h"
#include "tests/support/sampled.h"
#include "tests/support/text_folder.h"

namespace braid::train::run_checkpoints_test {
namespace {

// Remembers losses; `given` stand for those of a run before it.
class Listener final : public RunObserver {
 public:
  void on_start(const RunStart&) override {}
  void on_step(const StepReport& report) override { memory = report.memory; }
  void on_evaluation(const Evaluation& evaluation) override { losses[evaluation.step] = evaluation.loss; }
  bool knows_evaluation(int64_t step) override { return losses.contains(step); }
  std::map<int64_t, double> recorded_evaluations() override { return losses; }
  void on_checkpoint(int64_t step, const std::string&) override { saved.push_back(step); }

  std::map<int64_t, double> losses;
  std::vector<int64_t> saved;
  std::vector<param::MemoryUse> memory;  // of the last step
};

using Steps = std::vector<int64_t>;

class RunCheckpointsTest : public TextFolder {
 protected:
  RunSpec spec(const CheckpointSpec& kept) const {
    RunSpec spec;
    spec.model = {.layers = 2, .heads = 2, .width = 16, .context = 16};
    spec.data.paths = {path("text")};
    spec.train = {.steps = 8, .batch = 4, .microbatch = 2, .eval_every = 2, .eval_sequences = 4, .save_every = 2};
    spec.train.out = path("run");
    spec.checkpoint = kept;
    return spec;
  }
  static void run(const RunSpec& spec, Listener& listener) {
    std::filesystem::create_directories(spec.train.out);
    run_training(spec, listener, {[] { return false; }});
  }
  Steps left() const {
    Steps steps;
    for (const ckpt::SavedCheckpoint& saved : ckpt::saved_checkpoints(path("run"))) steps.push_back(saved.step);
    return steps;
  }
};

TEST_F(RunCheckpointsTest, TheNewestStay) {
  Listener listener;
  run(spec({.keep = 2}), listener);
  EXPECT_EQ(listener.saved, (Steps{2, 4, 6, 8}));
  EXPECT_EQ(left(), (Steps{8, 6}));
}

TEST_F(RunCheckpointsTest, TheBestStays) {
  Listener listener;
  run(spec({.keep = 1, .keep_best = 1}), listener);
  const auto better = [&](int64_t a, int64_t b) { return listener.losses.at(a) < listener.losses.at(b); };
  const Steps before{2, 4, 6};  // the last is evaluated when all is removed
  EXPECT_EQ(left(), (Steps{8, *std::ranges::min_element(before, better)}));
}

TEST_F(RunCheckpointsTest, ItStaysThroughARestart) {
  RunSpec first = spec({.keep = 2, .keep_best = 1});
  first.train.steps = 4;
  Listener listener;
  run(first, listener);
  ASSERT_EQ(left(), (Steps{4, 2}));
  listener.losses.at(2) = 0;  // of all that were and will be
  RunSpec rest = spec({.keep = 1, .keep_best = 1});
  rest.train.resume = rest.train.out + "/step-4";
  run(rest, listener);
  EXPECT_EQ(left(), (Steps{8, 2}));
}

// A rank whose host sees another folder, where ranks are threads.
TEST_F(RunCheckpointsTest, OneRankLooksWhetherASaveIsNeeded) {
  RunSpec first = spec({});
  first.mesh.data = 2;
  first.train.steps = 2;
  Listener listener;
  run(first, listener);
  const RunData data(first.data, "");
  const RunSpec resolved = data.resolved(first);
  const data::Corpus corpus = data.corpus(resolved);
  RunSpec sees = resolved, blind = resolved;
  sees.train.resume = first.train.out + "/step-2";
  blind.train.resume = path("not-mounted") + "/step-2";
  for (const bool rank_0_sees : {true, false}) {
    std::vector<int> saved(2, -1);
    run_ranks(2, [&](Communicator& world) {
      at::get_num_threads();
      at::set_num_threads(1);
      Trainer trainer(resolved, corpus, world);
      RunStart start;
      start.spec = (world.rank() == 0) == rank_0_sees ? sees : blind;
      ckpt::CheckpointReading none("");
      const RunCheckpoints checkpoints({start, listener, none}, trainer, world);
      saved[static_cast<size_t>(world.rank())] = checkpoints.is_saved(2) ? 1 : 0;
    });
    EXPECT_EQ(saved, std::vector<int>(2, rank_0_sees ? 1 : 0));
  }
}

class AsynchronousSaves : public RunCheckpointsTest {
 protected:
  // Returns the bytes of the tensors' files, by step and name.
  std::map<std::string, std::string> bytes_in(const std::string& run) const {
    std::map<std::string, std::string> contents;
    for (const ckpt::SavedCheckpoint& saved : ckpt::saved_checkpoints(run)) {
      for (const auto& entry : std::filesystem::directory_iterator(saved.directory)) {
        const std::string file = entry.path().filename();
        if (file.ends_with(".safetensors")) contents[cat(saved.step, "/", file)] = content(entry.path());
      }
    }
    return contents;
  }
};

struct Layout {
  const char* name;
  void (*change)(RunSpec& spec);
};

const std::vector<Layout> kLayouts = {
    {"one rank", [](RunSpec&) {}},
    {"zero 3", [](RunSpec& spec) { spec.mesh.data = 2, spec.sync.zero = 3; }},
    {"local sgd",
     [](RunSpec& spec) {
       spec.mesh.data = 2, spec.sync.replication = ReplicationKind::LocalSgd, spec.sync.period = 3;
     }},
    {"pipeline", [](RunSpec& spec) { spec.mesh.pipe = 2; }},
    {"bfloat16", [](RunSpec& spec) { spec.train.dtype = DType::BFloat16; }},
    {"servers",
     [](RunSpec& spec) {
       spec.mesh.data = 2, spec.sync.replication = ReplicationKind::ParameterServer, spec.optimizer.clip_norm = 0;
       spec.train.reduction = Reduction::Fast;
     }},
};

// Two saves are due at neighbouring steps: the second waits for the first.
TEST_F(AsynchronousSaves, HaveTheBytesOfThoseThatAreWaitedFor) {
  for (const Layout& layout : sampled(kLayouts, 1)) {
    SCOPED_TRACE(layout.name);
    RunSpec waited = spec({});
    waited.train.save_every = 1;
    waited.train.steps = 5;
    waited.train.reduction = Reduction::Reproducible;
    layout.change(waited);
    RunSpec behind = waited;
    behind.checkpoint.async = true;
    behind.train.out = path("behind");
    Listener one, other;
    run(waited, one);
    run(behind, other);
    EXPECT_EQ(other.saved, one.saved);
    EXPECT_GE(bytes_in(behind.train.out).size(), 10u) << "weights and states of five steps";
    EXPECT_EQ(bytes_in(behind.train.out), bytes_in(waited.train.out));
    std::filesystem::remove_all(waited.train.out);
    std::filesystem::remove_all(behind.train.out);
  }
}

TEST_F(AsynchronousSaves, AreGoneOnFromAndOldOnesRemoved) {
  RunSpec behind = spec({.keep = 2, .async = true});
  Listener listener;
  run(behind, listener);
  EXPECT_EQ(listener.saved, (Steps{2, 4, 6, 8}));
  EXPECT_EQ(left(), (Steps{8, 6}));
  behind.train.resume = behind.train.out + "/step-8";
  behind.train.steps = 9;
  run(behind, listener);
  EXPECT_EQ(left(), (Steps{9, 8}));
}

TEST_F(AsynchronousSaves, TakeMemoryThatIsAccountedAndLimited) {
  RunSpec behind = spec({.async = true});
  behind.mesh.pipe = 2;
  Listener listener;
  run(behind, listener);
  ASSERT_EQ(listener.memory.size(), 2u);
  double copied = 0, saved = 0;
  for (const param::MemoryUse& use : listener.memory) {
    EXPECT_GT(use.peak_bytes[static_cast<size_t>(param::MemoryCategory::Snapshots)], 0);
    copied += static_cast<double>(use.peak_bytes[static_cast<size_t>(param::MemoryCategory::Snapshots)]);
  }
  for (const auto& [name, bytes] : bytes_in(behind.train.out)) {
    if (name.starts_with("8/")) saved += static_cast<double>(bytes.size());
  }
  EXPECT_NEAR(copied, saved, 32768) << "but for the headers of files";
  behind.checkpoint.host_gib = 1e-6;
  behind.train.out = path("small");
  try {
    run(behind, listener);
    FAIL() << "no memory is taken that was not allowed";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems()[0].key, "checkpoint.host_gib");
    behind.checkpoint.host_gib = std::stod(error.problems()[0].nearest);
  }
  run(behind, listener);
}

}  // namespace
}  // namespace braid::train::run_checkpoints_test
