// The probe gives one number to all ranks and leaves no trace in what the run accounts and draws.
#include "braid/train/peak_probe.h"

#include <ATen/Context.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <vector>

#include "braid/comm/local/run_ranks.h"
#include "braid/param/memory_account.h"
#include "braid/train/timeline_exchange.h"

namespace braid::train::peak_probe_test {
namespace {

TEST(PeakProbe, AllRanksHearTheSame) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    std::vector<PeakFlops> heard(2);
    run_ranks(2, [&](Communicator& world) {
      heard[static_cast<size_t>(world.rank())] = measured_peak(dtype, at::kCPU, world);
    });
    EXPECT_GT(heard[0].per_rank, 0);
    EXPECT_EQ(heard[0].per_rank, heard[1].per_rank);
    EXPECT_EQ(heard[0].size, heard[1].size);
    EXPECT_EQ(heard[0].source, PeakSource::Measured);
  }
}

TEST(PeakProbe, CountsToNoRanksMemoryAndDrawsNoRandomNumbers) {
  param::install_memory_accounting();
  at::manual_seed(7);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(7);
  run_ranks(1, [&](Communicator& world) {
    param::account_memory_to(world.rank());
    param::reset_memory_peak(world.rank());
    const int64_t before = param::memory_use(world.rank()).peak_total_bytes;
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) measured_peak(dtype, at::kCPU, world);
    // The smallest matrix has 256 KiB; what the ranks exchange has a few bytes.
    EXPECT_LT(param::memory_use(world.rank()).peak_total_bytes, before + 4096);
  });
  EXPECT_TRUE(at::rand({4}).equal(expected));
}

TEST(TimelineExchange, RowsArriveWithEveryCategory) {
  run_ranks(3, [&](Communicator& world) {
    param::MemoryUse use;
    for (int c = 0; c < param::kNumMemoryCategories; ++c) {
      use.bytes[c] = 100 * world.rank() + c;
      use.peak_bytes[c] = (int64_t{1} << 45) + 100 * world.rank() + c;
    }
    use.peak_total_bytes = 7 + world.rank();
    const schedule::Span span{{Op::Forward, 0, 0}, 1.0 + world.rank(), 3.0};
    RowsInFlight in_flight = start_gathering(busy_row({span}, use), world);
    const auto rows = finish_gathering(in_flight);
    ASSERT_EQ(rows.size(), 3u);
    for (int rank = 0; rank < 3; ++rank) {
      const BusyRow& row = rows[static_cast<size_t>(rank)];
      EXPECT_EQ(row.begin, 1.0 + rank);
      EXPECT_EQ(row.busy, 2.0 - rank);
      EXPECT_EQ(row.memory.peak_total_bytes, 7 + rank);
      EXPECT_EQ(row.memory.bytes[5], 100 * rank + 5);
      EXPECT_EQ(row.memory.peak_bytes[2], (int64_t{1} << 45) + 100 * rank + 2);
    }
  });
}

}  // namespace
}  // namespace braid::train::peak_probe_test
