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

TEST(Recompute, ReadsListsOfBlocks) {
  const Recompute list = recompute_policy("blocks:0-3+5+7-11/2").value();
  EXPECT_EQ(list, (Recompute{Listed, 0, {{0, 4, 1}, {5, 6, 1}, {7, 12, 2}}}));
  EXPECT_EQ(recomputed_segments(list, 12),
            (std::vector<RecomputedBlocks>{
                {0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 4, 1}, {5, 6, 1}, {7, 9, 2}, {9, 11, 2}, {11, 12, 1}}));
  for (const char* malformed :
       {"blocks:", "blocks", "blocks:3-1", "blocks:0,2", "blocks:0+0", "blocks:2+1", "blocks:0-2+2", "blocks:1/0",
        "blocks:-1", "blocks:1-", "blocks:1+", "blocks: 1", "blocks:4097", "blocks:x"}) {
    EXPECT_EQ(recompute_policy(malformed), std::nullopt) << malformed;
    EXPECT_NE(recompute_faults({malformed}), "") << malformed;
  }
}

TEST(Recompute, TellsEveryFault) {
  EXPECT_EQ(
      recompute_faults({"none,blocks:3-1+x+9+8,fll,auto"}),
      "of \"blocks:3-1+x+9+8\" 3-1 ends before it begins, \"x\" is not A, A-B or A-B/K with numbers up to 4096, 8 "
      "begins before block 10, where the range before it ends; \"fll\" is none of them; \"auto\" is for all stages "
      "together");
  EXPECT_EQ(missing_blocks({"blocks:0-3+5,none,blocks:2"}, {4, 4, 2}),
            "5 of stage 0, which has 4 blocks; 2 of stage 2, which has 2 blocks");
  EXPECT_EQ(missing_blocks({"blocks:2"}, {3, 2}), "2 of stage 1, which has 2 blocks");
  EXPECT_EQ(missing_blocks({"full"}, {3, 2}), "");
}

TEST(Recompute, TextsAreReadBack) {
  for (const char* text : {"none", "full", "every:2", "every:5", "blocks:0-3", "blocks:1+3+5-8/2", "blocks:0-1/2+3-8/3",
                           "blocks:8", "blocks:0-2/2+3-5/2"}) {
    const auto segments = recomputed_segments(recompute_policy(text).value(), 9);
    EXPECT_EQ(recompute_text(segments, 9), text);
  }
  EXPECT_EQ(recompute_text(recomputed_segments(recompute_policy("every:9").value(), 5), 5), "every:5");
  EXPECT_EQ(recompute_text({}, 0), "none");
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
