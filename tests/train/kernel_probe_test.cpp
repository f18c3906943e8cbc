// The probes of a block give one number to all ranks, for each size once, and draw nothing.
#include "braid/train/kernel_probe.h"

#include <ATen/Context.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "braid/comm/local/run_ranks.h"
#include "braid/train/run_rates.h"

namespace braid::kernel_probe_test {
namespace {

RunSpec small(int data) {
  RunSpec spec;
  spec.model.width = 64;
  spec.model.heads = 2;
  spec.model.context = 32;
  spec.train.microbatch = 2;
  spec.mesh.data = data;
  return spec;
}

TEST(KernelProbe, AllRanksHearTheSameOfEachSizeOnce) {
  std::vector<BlockSpeed> heard(2);
  at::manual_seed(7);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(7);
  run_ranks(2, [&](Communicator& world) {
    heard[static_cast<size_t>(world.rank())] = measured_block(small(2), at::kCPU, world);
  });
  EXPECT_TRUE(at::rand({4}).equal(expected));
  // Queries, keys and values h x 3h; out h x h; up and down h x 4h, which are one size.
  const double hh = 2.0 * 64 * 64 * 64;
  ASSERT_EQ(heard[0].products.size(), 3u);
  EXPECT_EQ(heard[0].products[0].flops, hh);
  EXPECT_EQ(heard[0].products[1].flops, 3 * hh);
  EXPECT_EQ(heard[0].products[2].flops, 4 * hh);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_GT(heard[0].products[row].flops_per_second, 0);
    EXPECT_EQ(heard[0].products[row].flops_per_second, heard[1].products[row].flops_per_second);
  }
  EXPECT_EQ(heard[0].attention.context, 32);
  EXPECT_GT(heard[0].attention.forward, 0);
  EXPECT_EQ(heard[0].attention.backward, heard[1].attention.backward);
}

TEST(KernelProbe, SkewIsOfTensorRanksThatComputeTogether) {
  RunSpec spec = small(1);
  spec.mesh.tensor = 2;
  run_ranks(2, [&](Communicator& world) {
    EXPECT_GT(measured_rates(spec, 1, world).devices[0].skew, 0);
    EXPECT_EQ(measured_rates(small(2), 1, world).devices[0].skew, 0);
  });
}

TEST(RunRates, MoreRanksThanCoresTakeTurns) {
  const int crowd = 5;
  std::vector<Cluster> seen(crowd);
  run_ranks(crowd, [&](Communicator& world) {
    seen[static_cast<size_t>(world.rank())] = measured_rates(small(crowd), 1, world);
  });
  const DeviceGroup& group = seen[0].devices[0];
  EXPECT_TRUE(group.shared_cores);
  ASSERT_EQ(group.peaks.size(), 1u);
  EXPECT_GT(group.peaks[0].flops, 0);
  EXPECT_GT(seen[0].node.bytes_per_second, 0);
  EXPECT_EQ(seen[0].network, Link());
}

TEST(RunRates, HostsOfRanksAreInBlocksOrAsListed) {
  RunSpec spec = small(4);
  EXPECT_EQ(host_of_ranks(spec, 1), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(host_of_ranks(spec, 2), (std::vector<int>{0, 0, 1, 1}));
  spec.run.placement = "0,1,0,1";
  EXPECT_EQ(host_of_ranks(spec, 2), (std::vector<int>{0, 1, 0, 1}));
}

}  // namespace
}  // namespace braid::kernel_probe_test
