// The microbatches that ranks hold of a stage, read off schedules.
#include <gtest/gtest.h>

#include "braid/plan/partition.h"
#include "braid/schedule/generators.h"

namespace braid::plan::holders_test {
namespace {

TEST(Holders, FollowTheSchedule) {
  EXPECT_EQ(holders(schedule::one_f_one_b(3, 8)), (std::vector<Holder>{{0, 0, 1, 3}, {1, 1, 1, 2}, {2, 2, 1, 1}}));
  EXPECT_EQ(holders(schedule::gpipe(2, 5)), (std::vector<Holder>{{0, 0, 1, 5}, {1, 1, 1, 5}}));
}

// Two stages on one rank; weight passes come late.
TEST(Holders, AMicrobatchIsHeldUntilItsWeightPass) {
  Schedule schedule{"by hand", 2, 2, {0, 0}, {{}}};
  for (const char* word : {"0F0", "1F0", "1I0", "0I0", "0F1", "1F1", "0W0", "1W0", "1B1", "0B1"}) {
    schedule.programs[0].push_back(parse_action(word));
  }
  EXPECT_EQ(holders(schedule), (std::vector<Holder>{{0, 0, 1, 2}, {1, 0, 1, 2}}));
  std::swap(schedule.programs[0][4], schedule.programs[0][6]);  // 0W0 before 0F1
  EXPECT_EQ(holders(schedule), (std::vector<Holder>{{0, 0, 1, 1}, {1, 0, 1, 2}}));
}

TEST(Holders, ShareAMirroredStage) {
  Schedule schedule{"by hand", 2, 4, {0, 1}, {{}, {}}, {1, 0}, 3};
  for (const char* word : {"0F0", "0F1", "0F2", "1F3"}) schedule.programs[0].push_back(parse_action(word));
  for (const char* word : {"0F3", "1F0", "1B0", "1F1", "1F2"}) schedule.programs[1].push_back(parse_action(word));
  EXPECT_EQ(holders(schedule),
            (std::vector<Holder>{{0, 0, 0.75, 3}, {0, 1, 0.25, 1}, {1, 0, 0.25, 1}, {1, 1, 0.75, 2}}));
}

}  // namespace
}  // namespace braid::plan::holders_test
