// The order in which deferred weight gradients run, and what becomes of those of a backward that failed.
#include "braid/param/weight_grad_queue.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "tests/param/made_gradients.h"

namespace braid::param::weight_grad_queue_test {
namespace {

TEST(WeightGradQueue, RunsOneMicrobatchInOrderOfPushing) {
  ParamStore store(tied_model(), Reduction::Fast, at::kFloat, 1);
  const auto sink = accumulating_sink(store);
  sink->begin_step(2);
  WeightGradQueue queue(*sink);
  std::vector<std::string> ran;
  const auto push = [&](const std::string& name, int use, int micro) {
    queue.push(store[name], use, micro, [&, name, use, micro](const GradSlot& slot) {
      ran.push_back(cat(name, use, micro));
      write(slot, gradient(store[name], use, micro));
    });
  };
  push("wte", 1, 0);
  push("wpe", 0, 1);
  push("wpe", 0, 0);
  push("wte", 1, 1);
  push("wte", 0, 0);
  EXPECT_EQ(queue.pending(), 5);
  queue.run(0);
  EXPECT_EQ(joined(ran), "wte10, wpe00, wte00");
  EXPECT_EQ(queue.pending(), 2);
  push("wte", 0, 1);
  queue.run_all();
  EXPECT_EQ(joined(ran), "wte10, wpe00, wte00, wpe01, wte11, wte01");
  EXPECT_EQ(queue.pending(), 0);
  EXPECT_TRUE(at::equal(store["wpe"].main_grad, tree(store["wpe"], 0, 0, 2)));
}

TEST(WeightGradQueue, DropsEachClosureAsSoonAsItRan) {
  ParamStore store(tied_model(), Reduction::Fast, at::kFloat, 1);
  const auto sink = accumulating_sink(store);
  sink->begin_step(3);
  WeightGradQueue queue(*sink);
  const auto held = std::make_shared<int>(0);
  std::vector<long> alive;
  for (int micro = 0; micro < 3; ++micro) {
    queue.push(store["wpe"], 0, micro, [&alive, held, watch = std::weak_ptr<int>(held)](const GradSlot&) {
      alive.push_back(watch.use_count());
    });
  }
  queue.run(0);
  queue.run_all();
  EXPECT_EQ(alive, (std::vector<long>{4, 3, 2}));
  EXPECT_EQ(held.use_count(), 1);
}

TEST(WeightGradQueue, AtOnceRunsWhatIsPushedAndLeavesWhatWaited) {
  ParamStore store(tied_model(), Reduction::Fast, at::kFloat, 1);
  const auto sink = accumulating_sink(store);
  sink->begin_step(2);
  WeightGradQueue queue(*sink);
  std::vector<int> ran;
  const auto push = [&](int micro) {
    queue.push(store["wpe"], 0, micro, [&, micro](const GradSlot&) { ran.push_back(micro); });
  };
  push(1);
  {
    const WeightGradQueue::AtOnce at_once(queue);
    push(0);
    EXPECT_EQ(ran, (std::vector<int>{0}));
  }
  EXPECT_EQ(queue.pending(), 1);
  queue.run(1);
  EXPECT_EQ(ran, (std::vector<int>{0, 1}));
}

struct RecordedPushes {
  ParamStore store{tied_model(), Reduction::Fast, at::kFloat, 1};
  std::unique_ptr<GradSink> sink = accumulating_sink(store);
  WeightGradQueue queue{*sink};
  std::vector<int> ran;

  RecordedPushes() { sink->begin_step(4); }
  void push(int micro) {
    queue.push(store["wpe"], 0, micro, [this, micro](const GradSlot&) { ran.push_back(micro); });
  }
};

TEST(WeightGradQueue, DeferredEntriesRunTogetherInOrderOfPushing) {
  RecordedPushes pushes;
  pushes.queue.set_overlap(ReductionOverlap::On);
  const WeightGradQueue::AtOnce at_once(pushes.queue);
  pushes.push(0);
  pushes.queue.defer();
  pushes.push(1);
  pushes.queue.defer();
  pushes.push(2);
  EXPECT_EQ(pushes.ran, (std::vector<int>{0}));
  EXPECT_TRUE(pushes.queue.defers());
  pushes.queue.run_deferred();
  EXPECT_EQ(pushes.ran, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(pushes.queue.defers());
  pushes.push(3);
  EXPECT_EQ(pushes.ran, (std::vector<int>{0, 1, 2, 3}));
}

TEST(WeightGradQueue, DefersOnlyWithOverlapAndInsideAtOnce) {
  RecordedPushes off, outside;
  {
    const WeightGradQueue::AtOnce at_once(off.queue);
    off.queue.defer();
    off.push(0);
  }
  EXPECT_EQ(off.ran, (std::vector<int>{0}));
  outside.queue.set_overlap(ReductionOverlap::On);
  outside.queue.defer();
  outside.push(0);
  outside.queue.run_deferred();
  EXPECT_TRUE(outside.ran.empty());
  EXPECT_EQ(outside.queue.pending(), 1);
}

TEST(WeightGradQueue, DeferredEntriesOfABackwardThatFailedAreDropped) {
  RecordedPushes pushes;
  pushes.queue.set_overlap(ReductionOverlap::On);
  {
    const WeightGradQueue::AtOnce at_once(pushes.queue);
    pushes.queue.defer();
    pushes.push(0);
  }
  const WeightGradQueue::AtOnce at_once(pushes.queue);
  pushes.push(1);
  pushes.queue.run_deferred();
  EXPECT_EQ(pushes.ran, (std::vector<int>{1}));
}

}  // namespace
}  // namespace braid::param::weight_grad_queue_test
