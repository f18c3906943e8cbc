// The guarantees of both kinds of launchers: values by rank, of any size, errors with their type, threads for each.
#include "braid/launch/launcher.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "tests/launch/forked.h"
#include "tests/support/shared_array.h"

namespace braid::launch::tests::launcher_test {
namespace {

class BothLaunchers : public testing::TestWithParam<RanksAs> {
 protected:
  const Launcher& launcher_ = launcher({.ranks = GetParam()});
};
INSTANTIATE_TEST_SUITE_P(Ranks, BothLaunchers, testing::Values(RanksAs::Threads, RanksAs::Processes),
                         [](const auto& info) { return cat(info.param); });

TEST_P(BothLaunchers, values_come_home_by_rank_whatever_their_size) {
  const auto value = [](int rank) { return std::vector<std::string>{cat(rank), std::string(rank << 22, 'x'), ""}; };
  const auto values = values_by_rank(launcher_, 3, [&](Communicator& world) { return value(world.rank()); });
  ASSERT_EQ(values.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(values[rank] == value(rank)) << "rank " << rank;
}

TEST_P(BothLaunchers, ranks_are_what_was_asked_for_and_compute_with_their_threads) {
  struct Seen {
    RankKind kind;
    int threads;
  };
  const auto seen = [](Communicator& world) { return Seen{world.rank_kind(), at::get_num_threads()}; };
  for (const Seen& rank : values_by_rank(launcher_, 2, seen, {.threads_per_rank = 3})) {
    EXPECT_EQ(rank.kind, GetParam() == RanksAs::Threads ? RankKind::Thread : RankKind::Process);
    EXPECT_EQ(rank.threads, 3);
  }
  const int share = std::max(1, num_cores() / 4);
  for (const Seen& rank : values_by_rank(launcher_, 4, seen, {})) EXPECT_EQ(rank.threads, share);
}

TEST_P(BothLaunchers, an_error_comes_home_with_its_type_and_all_it_carries) {
  const auto fail_with = [&](auto error) {
    values_by_rank(launcher_, 2, [&](Communicator& world) {
      if (world.rank() == 1) throw error;
      world.barrier().wait_host();
      return 0;
    });
  };
  const std::vector<Problem> problems{{"model.heads", "6", "must divide 4", "8"}};
  try {
    fail_with(ConfigError(problems));
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems(), problems);
  }
  try {
    fail_with(IoError("a file", 12, "is cut off"));
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), "a file");
    EXPECT_EQ(error.offset(), 12);
  }
  EXPECT_THROW(fail_with(RunError("not finite")), RunError);
}

TEST_P(BothLaunchers, a_deadline_that_passes_ends_the_ranks) {
  SharedArray<int> over;
  const auto body = [&](Communicator& world) {
    while (world.rank() == 1 && over[0] == 0) std::this_thread::yield();
    try {
      world.barrier().wait_host();
    } catch (const CommError&) {
      over[0] = 1;
      throw;
    }
    return 0;
  };
  EXPECT_THROW(values_by_rank(launcher_, 2, body, {.deadline_seconds = 0.05}), CommError);
}

}  // namespace
}  // namespace braid::launch::tests::launcher_test
