// The microbatches of each data rank in a step.
#include "braid/spec/batch_shares.h"

#include <gtest/gtest.h>

#include <limits>

#include "braid/base/errors.h"

namespace braid::spec::batch_shares_test {
namespace {

RunSpec run(int batch, int data, const std::string& shares) {
  RunSpec spec;
  spec.train.batch = batch;
  spec.train.microbatch = 2;
  spec.mesh.data = data;
  spec.mesh.batch_shares = shares;
  return spec;
}

TEST(BatchShares, AreContiguousBlocksInProportion) {
  EXPECT_EQ(first_microbatches(run(16, 2, "equal")), (std::vector{0, 4, 8}));
  EXPECT_EQ(first_microbatches(run(16, 2, "3,1")), (std::vector{0, 6, 8}));
  EXPECT_EQ(first_microbatches(run(16, 2, "6, 2")), (std::vector{0, 6, 8}));
  EXPECT_EQ(first_microbatches(run(24, 3, "1,4,1")), (std::vector{0, 2, 10, 12}));
  EXPECT_EQ(num_microbatches(run(24, 3, "1,4,1"), 1), 8);
  EXPECT_EQ(busiest_data_rank(run(24, 3, "1,4,1")), 1);
  EXPECT_EQ(busiest_data_rank(run(24, 3, "equal")), 0);
}

TEST(BatchShares, MakeTheUnitOfABatch) {
  EXPECT_EQ(batch_unit(run(16, 2, "equal")), 4);
  EXPECT_EQ(batch_unit(run(16, 2, "3,1")), 8);
  EXPECT_EQ(batch_unit(run(16, 2, "1000000,1000000")), 4'000'000);
}

TEST(BatchShares, AUnitThatExceedsSixtyFourBitsIsTheLargestNumber) {
  RunSpec spec = run(16, std::numeric_limits<int>::max(), "equal");
  spec.train.microbatch = spec.mesh.expert = std::numeric_limits<int>::max();
  EXPECT_EQ(batch_unit(spec), std::numeric_limits<int64_t>::max());
}

TEST(BatchShares, AreWholeNumbersOfEveryDataRank) {
  EXPECT_EQ(batch_shares(run(16, 2, "3,1").mesh), (std::vector{3, 1}));
  for (const char* other : {"equal", "", "3", "3,1,1", "3,0", "3,-1", "1.5,0.5", "1e7,1", "3,x"}) {
    EXPECT_FALSE(batch_shares(run(16, 2, other).mesh)) << other;
  }
  EXPECT_THROW(first_microbatches(run(16, 2, "3,0")), InternalError);
}

}  // namespace
}  // namespace braid::spec::batch_shares_test
