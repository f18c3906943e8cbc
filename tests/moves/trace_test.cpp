// Traces of schedules, and next uses.
#include "braid/moves/trace.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/schedule/generators.h"

namespace braid::moves::trace_test {
namespace {

std::vector<std::vector<int>> chunks_of(const Trace& trace) {
  std::vector<std::vector<int>> chunks;
  for (const Use& use : trace.uses) chunks.push_back(use.chunks);
  return chunks;
}

TEST(Trace, BackwardGoesFromTheLastBlockToTheFirst) {
  const Stages stages = make_stages({{10, 20}, {30, 40, 50}});
  const Trace first = trace_of(schedule::gpipe(2, 2), 0, stages);
  EXPECT_EQ(chunks_of(first), (std::vector<std::vector<int>>{{0}, {1}, {0}, {1}, {1}, {0}, {1}, {0}}));
  const Trace last = trace_of(schedule::one_f_one_b(2, 2), 1, stages);
  EXPECT_EQ(chunks_of(last),
            (std::vector<std::vector<int>>{{2}, {3}, {4}, {4}, {3}, {2}, {2}, {3}, {4}, {4}, {3}, {2}}));
  EXPECT_EQ(least_capacity(last), 50);
}

TEST(Trace, FirstAndLastBlockUseATiedTable) {
  const Stages stages = make_stages({{10, 20}, {30, 40}}, 7);
  const Schedule schedule = schedule::gpipe(2, 1);
  EXPECT_EQ(chunks_of(trace_of(schedule, 0, stages)), (std::vector<std::vector<int>>{{0, 4}, {1}, {1}, {0, 4}}));
  EXPECT_EQ(chunks_of(trace_of(schedule, 1, stages)), (std::vector<std::vector<int>>{{2}, {3, 4}, {3, 4}, {2}}));
  EXPECT_EQ(least_capacity(trace_of(schedule, 1, stages)), 47);
}

TEST(Trace, GradientsAreUsedByBackwardAndWeightPasses) {
  Stages stages;
  stages.chunks = {{8}, {8, Content::Gradients}};
  stages.blocks = {{{{0}, {1}}}};
  const Schedule schedule{"split", 1, 1, {0}, {{{Op::Forward}, {Op::InputGrad}, {Op::WeightGrad}, {Op::ReduceGrad}}}};
  EXPECT_EQ(chunks_of(trace_of(schedule, 0, stages)), (std::vector<std::vector<int>>{{0}, {0}, {1}}));
  EXPECT_EQ(chunks_of(trace_of(schedule::gpipe(1, 1), 0, stages)), (std::vector<std::vector<int>>{{0}, {0, 1}}));
  const Schedule asynchronous{"update", 1, 1, {0}, {{{Op::Forward}, {Op::FullBackward}, {Op::Update}}}};
  EXPECT_THROW(trace_of(asynchronous, 0, stages), InternalError);
}

TEST(NextUse, WrapsAround) {
  const NextUse next({{{1}, {1}, {1}}, {{{0}}, {{1}}, {{0}}}});
  EXPECT_EQ(next.distance(0, 0), 2);
  EXPECT_EQ(next.distance(0, 2), 1);
  EXPECT_EQ(next.distance(1, 0), 1);
  EXPECT_EQ(next.distance(1, 1), 3);
  EXPECT_EQ(next.distance(2, 1), NextUse::kNever);
  const NextUse equal({{{1}, {1}}, {{{0, 1}}}});
  EXPECT_EQ(equal.farthest(std::vector<int>{1, 0}, 0), 0);
}

// Source: PatrickStar's unitest/test_eviction_policy.py (github.com/Tencent/PatrickStar, test_chunk_eviction). The
// trace of a step has chunk 0 at moment 0 and chunk 1 at moment 1. At moment 0 chunk 0 is evicted, at moment 1 chunk 1.
TEST(NextUse, PatrickStarsCase) {
  const NextUse next({{{40}, {40}}, {{{0}}, {{1}}}});
  const std::vector<int> held = {0, 1};
  EXPECT_EQ(next.farthest(held, 0), 0);
  EXPECT_EQ(next.farthest(held, 1), 1);
}

}  // namespace
}  // namespace braid::moves::trace_test
