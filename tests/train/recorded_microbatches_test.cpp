// Recorded microbatches with a graph that, in place of a device, computes again when it is replayed.
#include "braid/train/recorded_microbatches.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "braid/base/seeds.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/schedule/generators.h"
#include "braid/train/block_executor.h"
#include "tests/train/layout_run.h"

namespace braid::train::recorded_microbatches_test {
namespace {

constexpr int kSteps = device::StepGraphs::kWarmUpSteps + 3;

enum class Fault { None, InRecording };
enum class Backward { Full, Split };

// One rank with its model and executor, stepped by hand.
class Rank {
 public:
  Rank(const RunSpec& spec, Communicator& world)
      : corpus_(tiny_corpus()),
        groups_(mesh::DeviceMesh(spec.mesh), StageLayout::single(), world),
        model_(spec, groups_),
        batches_(spec, {corpus_.train, stream_key(spec.train.seed, "samples")}, groups_),
        executor_(spec, model_, batches_,
                  {ExecutorMode::Training, schedule::VersionPlan(schedule::gpipe(1, batches_.num_microbatches()),
                                                                 schedule::VersionRule::Own)}) {
    model_.sink().on_ready = [this](const param::Parameter&) { ++num_ready_; };
  }

  void record(Fault fault) {
    executor_.record_with([this, fault](device::DeviceGraph*) { return std::make_unique<Graph>(*this, fault); });
  }

  struct Step {
    at::Tensor grads;
    std::vector<double> losses;
  };
  // All forwards, then all backwards, and a plain descent, so that no step is like another.
  Step step(int64_t step, double loss_scale, Backward backward = Backward::Full) {
    const int num = batches_.num_microbatches();
    model_.sink().begin_step(num);
    num_ready_ = num_done_ = 0;
    executor_.begin_step(step, loss_scale);
    EXPECT_EQ(num_ready_, 0) << "a recording makes nothing ready";
    for (int micro = 0; micro < num; ++micro, ++num_done_) executor_.forward(0, micro);
    for (int micro = 0; micro < num; ++micro) run_backward(micro, backward);
    EXPECT_EQ(num_ready_, static_cast<int>(model_.params().params().size()));
    EXPECT_EQ(model_.weight_grads(0).pending(), 0);
    const c10::AutoGradMode no_grad(false);
    Step done{model_.params().flat_grads().clone(), executor_.losses()};
    model_.params().flat_data().detach().sub_(done.grads, 0.1 / loss_scale);
    return done;
  }
  void run_backward(int micro, Backward backward) {
    if (backward == Backward::Full) return executor_.full_backward(0, micro);
    executor_.input_grad(0, micro);
    executor_.weight_grad(0, micro);
  }
  int num_replays() const { return num_replays_; }
  std::string failure() { return executor_.recorded()->failure(); }

 private:
  struct Graph final : device::DeviceGraph {
    Graph(Rank& r, Fault f) : rank(r), fault(f), piece(r.num_graphs_++ % 2) {}
    void begin_capture() override {
      if (fault == Fault::InRecording && piece == 1) throw std::runtime_error("cannot record");
    }
    void end_capture() override {}
    void abandon_capture() override {}
    void replay() override { rank.replay(piece); }
    Rank& rank;
    Fault fault;
    int piece;
  };

  // Writes the gradients of the fixed microbatch where the graph would, and leaves the sink's books as they were.
  void replay(int piece) {
    ++num_replays_;
    RecordedMicrobatches& recorded = *executor_.recorded();
    const auto listener = std::exchange(model_.sink().on_ready, nullptr);
    model_.sink().begin_step(2);
    if (piece == 1) recorded.account_for(0);
    recorded.compute(piece);
    model_.sink().begin_step(batches_.num_microbatches());
    for (int micro = 0; micro < num_done_; ++micro) recorded.account_for(micro);
    model_.sink().on_ready = listener;
  }

  const data::Corpus corpus_;
  Groups groups_;
  RankModel model_;
  BatchSource batches_;
  BlockExecutor executor_;
  int num_ready_ = 0, num_done_ = 0, num_graphs_ = 0, num_replays_ = 0;
};

void with_rank(const RunSpec& spec, const std::function<void(Rank&)>& body) {
  run_ranks(1, [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    Rank rank(spec, world);
    body(rank);
  });
}

// float16's scale halves at the sixth step.
double scale_at(int step) { return step < device::StepGraphs::kWarmUpSteps + 2 ? 4 : 2; }

std::vector<Rank::Step> eager_steps(const RunSpec& spec) {
  std::vector<Rank::Step> steps;
  with_rank(spec, [&](Rank& rank) {
    for (int step = 0; step < kSteps; ++step) steps.push_back(rank.step(step, scale_at(step)));
  });
  return steps;
}

RunSpec dropout_spec(int batch) {
  RunSpec spec = tiny_spec(2, batch);
  spec.model.layers = 2;
  spec.model.dropout = 0.2;
  return spec;
}

void expect_same(const Rank::Step& found, const Rank::Step& expected) {
  EXPECT_TRUE(found.grads.equal(expected.grads));
  EXPECT_EQ(found.losses, expected.losses);
}

TEST(RecordedMicrobatches, ReplayWhatWasComputed) {
  for (const int batch : {1, 3}) {
    const RunSpec spec = dropout_spec(batch);
    const auto eager = eager_steps(spec);
    with_rank(spec, [&](Rank& rank) {
      rank.record(Fault::None);
      for (int step = 0; step < kSteps; ++step) {
        const int before = rank.num_replays();
        expect_same(rank.step(step, scale_at(step)), eager[static_cast<size_t>(step)]);
        const bool replays = step >= device::StepGraphs::kWarmUpSteps && scale_at(step) == 4;
        EXPECT_EQ(rank.num_replays() - before, replays ? batch : 0) << "step " << step;
      }
      EXPECT_EQ(rank.failure(), "");
    });
  }
}

// As zero-bubble schedules have it.
TEST(RecordedMicrobatches, ReplaySplitBackwardsToo) {
  const RunSpec spec = dropout_spec(3);
  const auto eager = eager_steps(spec);
  with_rank(spec, [&](Rank& rank) {
    rank.record(Fault::None);
    for (int step = 0; step < kSteps; ++step) {
      expect_same(rank.step(step, scale_at(step), Backward::Split), eager[static_cast<size_t>(step)]);
    }
    EXPECT_GT(rank.num_replays(), 0);
  });
}

TEST(RecordedMicrobatches, AreComputedWhenTheyCannotBeRecorded) {
  const RunSpec spec = dropout_spec(3);
  const auto eager = eager_steps(spec);
  with_rank(spec, [&](Rank& rank) {
    rank.record(Fault::InRecording);
    for (int step = 0; step < kSteps; ++step) {
      expect_same(rank.step(step, scale_at(step)), eager[static_cast<size_t>(step)]);
    }
    EXPECT_EQ(rank.num_replays(), 0);
    EXPECT_EQ(rank.failure(), "cannot record");
  });
}

}  // namespace
}  // namespace braid::train::recorded_microbatches_test
