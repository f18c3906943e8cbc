// The probes of a block give one number to all ranks, for each size once, and draw nothing.
#include "braid/train/kernel_probe.h"

#include <ATen/Context.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/param/memory_account.h"
#include "braid/plan/parallelism_table.h"
#include "braid/plan/predict_run.h"
#include "braid/train/run_rates.h"
#include "tests/support/failing_communicator.h"

namespace braid::train::kernel_probe_test {
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

std::function<void()> pause_of(std::chrono::milliseconds length) {
  return [length] { std::this_thread::sleep_for(length); };
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
  EXPECT_EQ(heard[0].elementwise.bytes, 4.0 * 64 * 64);
  EXPECT_GT(heard[0].elementwise.bytes_per_second, 0);
  EXPECT_EQ(heard[0].elementwise.bytes_per_second, heard[1].elementwise.bytes_per_second);
  EXPECT_EQ(heard[0].attention.context, 32);
  EXPECT_GT(heard[0].attention.forward, 0);
  EXPECT_EQ(heard[0].attention.backward, heard[1].attention.backward);
}

// Each of two context ranks has half of the tokens.
TEST(KernelProbe, MeasuresTheTokensOfAContextRank) {
  run_ranks(2, [](Communicator& world) {
    RunSpec spec = small(2);
    const BlockSpeed whole = measured_block(spec, at::kCPU, world);
    spec.mesh.context = 2;
    const BlockSpeed half = measured_block(spec, at::kCPU, world);
    EXPECT_EQ(half.attention.context, whole.attention.context / 2);
    EXPECT_EQ(half.products[0].flops, whole.products[0].flops / 2);
    EXPECT_EQ(half.elementwise.bytes, whole.elementwise.bytes / 2);
  });
}

TEST(KernelProbe, CountsToNoRanksMemory) {
  param::install_memory_accounting();
  RunSpec spec = small(1);
  spec.mesh.tensor = 2;
  run_ranks(2, [&](Communicator& world) {
    param::account_memory_to(world.rank());
    world.barrier().wait_host();
    param::reset_memory_peak(world.rank());
    const param::MemoryUse before = param::memory_use(world.rank());
    measured_block(spec, at::kCPU, world);
    measured_skew(spec, at::kCPU, world);
    // Queries, keys and values of a rank have 24 KiB; what ranks exchange to agree has a few bytes.
    const param::MemoryUse after = param::memory_use(world.rank());
    for (size_t category = 0; category < after.peak_bytes.size(); ++category) {
      EXPECT_LT(after.peak_bytes[category], before.peak_bytes[category] + 4096) << category;
    }
    EXPECT_EQ(param::accounted_rank(), world.rank());
  });
}

TEST(KernelProbe, AHostThatPausesIsNotSlow) {
  run_ranks(1, [&](Communicator& world) {
    CallCount pause{.fails_after = 1, .fail = pause_of(std::chrono::milliseconds(700))};
    FailingCommunicator pausing(world, pause);
    EXPECT_GT(measured_blocks(DType::Float32, at::kCPU, pausing).size(), 1u);
    EXPECT_GT(pause.calls, 1);
  });
}

TEST(KernelProbe, WhereOneRankLacksMemoryAllHearOfIt) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends who asks for that much";
#endif
  run_ranks(2, [&](Communicator& world) {
    RunSpec spec = small(2);
    if (world.rank() == 1) spec.train.microbatch = 1 << 30, spec.model.context = 1 << 24;
    EXPECT_THROW(measured_block(spec, at::kCPU, world), RunError);
    EXPECT_NO_THROW(world.barrier().wait_host());
  });
}

TEST(KernelProbe, ElementsHaveTheTimeThatProductsLeave) {
  const BlockRemainder block{.whole = 5, .products = 3, .bytes = 12};
  EXPECT_EQ(block.bytes_per_second(10), 6);
  EXPECT_EQ(block.bytes_per_second(4), 4);
  // A device that computes while the host prepares the next kernel.
  EXPECT_EQ((BlockRemainder{.whole = 3, .products = 5, .bytes = 12}.bytes_per_second(10)), 10);
}

TEST(KernelProbe, SkewIsWhatWaitingCostsBeyondTheSums) {
  EXPECT_DOUBLE_EQ((BlockSeconds{.apart = 2, .in_step = 6, .sums = 3}.skew()), 0.5);
  EXPECT_EQ((BlockSeconds{.apart = 2, .in_step = 4, .sums = 3}.skew()), 0);
}

TEST(KernelProbe, SkewIsOfRanksThatWaitForEachOther) {
  RunSpec spec = small(1);
  spec.mesh.tensor = 2;
  run_ranks(2, [&](Communicator& world) {
    // After what ranks agree about, two calls, come a barrier and the first sums of a block.
    CallCount pause{.fails_after = world.rank() == 1 ? 4 : -1, .fail = pause_of(std::chrono::milliseconds(500))};
    FailingCommunicator pausing(world, pause);
    EXPECT_GT(measured_skew(spec, at::kCPU, pausing), 0);
    EXPECT_EQ(measured_rates(small(2), {}, world).devices[0].skew, 0);
  });
}

TEST(RunRates, MoreRanksThanCoresHaveRates) {
  const int crowd = 5;
  std::vector<plan::Cluster> seen(crowd);
  run_ranks(crowd, [&](Communicator& world) {
    seen[static_cast<size_t>(world.rank())] = measured_rates(small(crowd), {}, world);
  });
  const plan::DeviceGroup& group = seen[0].devices[0];
  EXPECT_TRUE(group.shared_cores);
  ASSERT_EQ(group.peaks.size(), 1u);
  EXPECT_GT(group.peaks[0].flops, 0);
  EXPECT_GT(seen[0].node.bytes_per_second, 0);
  EXPECT_EQ(seen[0].network, plan::Link());
}

TEST(RunRates, LinksAreOfThoseWhoHaveThem) {
  run_ranks(3, [&](Communicator& world) {
    const plan::Cluster cluster = measured_rates(small(3), {0, 1, 1}, world);
    EXPECT_GT(cluster.node.bytes_per_second, 0);
    EXPECT_GT(cluster.network.bytes_per_second, 0);
  });
}

// Links that no two ranks of the mesh have are not measured, so a prediction must not use them.
TEST(RunRates, PredictionsAreFiniteWhereverServersRun) {
  RunSpec spec = small(2);
  spec.model.vocab = 257;
  spec.sync.replication = ReplicationKind::ParameterServer;
  spec.sync.servers_on = ServersOn::Own;
  spec.sync.servers = 2;
  const std::vector<int> servers_apart{0, 0, 1, 1}, workers_apart{0, 1, 0, 1};
  for (const std::vector<int>& hosts : {servers_apart, workers_apart}) {
    SCOPED_TRACE(testing::PrintToString(hosts));
    run_ranks(2, [&](Communicator& world) {
      const plan::Cluster rates = measured_rates(spec, hosts, world);
      if (world.rank() != 0) return;
      EXPECT_EQ(rates.devices[0].nodes, hosts[1] == 0 ? 1 : 2);
      EXPECT_TRUE(std::isfinite(plan::predict_run(spec, rates).step_seconds()));
      const std::vector<plan::ParallelismRow> rows = plan::parallelism_table(spec, rates, 2);
      EXPECT_TRUE(rows[0].possible);
      for (const plan::ParallelismRow& row : rows) {
        EXPECT_TRUE(!row.possible || std::isfinite(row.prediction.step_seconds())) << row.name;
      }
    });
  }
}

TEST(RunRates, OfAHostAsManyComputeAsItHasDevices) {
  const std::vector<int> hosts{0, 1, 0, 0, 1};
  std::vector<int> computing;
  for (int rank = 0; rank < 5; ++rank) {
    if (computes(hosts, rank, 2)) computing.push_back(rank);
  }
  EXPECT_EQ(computing, (std::vector<int>{0, 1, 2, 4}));
}

}  // namespace
}  // namespace braid::train::kernel_probe_test
