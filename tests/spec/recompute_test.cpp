// The words of memory.recompute, for all stages and for each.
#include "braid/spec/recompute.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"

namespace braid::spec::recompute_test {
namespace {

using enum Recompute::Keeps;

TEST(Recompute, KnowsItsWords) {
  EXPECT_EQ(recompute_policy("none"), (Recompute{Everything, 0}));
  EXPECT_EQ(recompute_policy("selective"), (Recompute{Selected, 0}));
  EXPECT_EQ(recompute_policy("full"), (Recompute{SegmentInputs, 1}));
  EXPECT_EQ(recompute_policy("every:1"), recompute_policy("full"));
  EXPECT_EQ(recompute_policy("every:4096"), (Recompute{SegmentInputs, 4096}));
  for (const char* unknown : {"", "Full", "every", "every:", "every:0", "every:4097", "every:+1", "every: 2",
                              "every:2x", "full,none", "every:4294967297"}) {
    EXPECT_EQ(recompute_policy(unknown), std::nullopt) << unknown;
  }
}

TEST(Recompute, OneEntryIsForAllStages) {
  const MemorySpec spec{" every:3\t"};
  for (const int stage : {0, 1, 70}) EXPECT_EQ(stage_recompute(spec, stage), (Recompute{SegmentInputs, 3}));
  EXPECT_EQ(stage_recompute({}, 0), Recompute{}) << "off unless asked for";
}

TEST(Recompute, SeveralAreOnePerStage) {
  const MemorySpec spec{"full, none,selective"};
  EXPECT_EQ(stage_recompute(spec, 0), (Recompute{SegmentInputs, 1}));
  EXPECT_EQ(stage_recompute(spec, 1), Recompute{});
  EXPECT_EQ(stage_recompute(spec, 2), (Recompute{Selected, 0}));
  EXPECT_THROW(stage_recompute(spec, 3), InternalError);
}

}  // namespace
}  // namespace braid::spec::recompute_test
