// Groups that may lose members: their collectives are those of any group, and a loss is told to all others in the same
// round.
#include "braid/comm/roster.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "braid/base/errors.h"
#include "braid/comm/agree.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/comm/values.h"

namespace braid::comm::tests::roster_test {
namespace {

at::Tensor numbers(int rank, int64_t count) {
  at::Tensor made = empty<double>(count);
  fill<double>(made, [&](int64_t i) { return static_cast<double>(10 * rank + i); });
  return made;
}

std::vector<double> values_of(const at::Tensor& tensor) {
  const auto* first = tensor.const_data_ptr<double>();
  return {first, first + tensor.numel()};
}

// The results of every collective on one rank.
std::vector<std::vector<double>> results(Communicator& group) {
  const int n = group.size(), rank = group.rank();
  std::vector<std::vector<double>> all;
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min}) {
    const at::Tensor tensor = numbers(rank, 5);
    group.all_reduce(tensor, op).wait_host();
    all.push_back(values_of(tensor));
  }
  const at::Tensor part = numbers(rank, 2), whole = numbers(rank, 2 * n), exchanged = numbers(0, 2 * n);
  group.reduce_scatter(part, whole, ReduceOp::Sum).wait_host();
  all.push_back(values_of(part));
  group.all_gather(whole, part).wait_host();
  all.push_back(values_of(whole));
  group.all_to_all(exchanged, whole).wait_host();
  all.push_back(values_of(exchanged));
  const at::Tensor sent = numbers(rank, 3);
  group.broadcast(sent, n - 1).wait_host();
  all.push_back(values_of(sent));
  group.barrier().wait_host();
  return all;
}

TEST(Roster, MakesTheCollectivesOfTheGroup) {
  run_ranks(3, [](Communicator& world) {
    const auto expected = results(world);
    Roster roster(world);
    RosterGroup group(roster, world);
    EXPECT_EQ(results(group), expected);  // not begun
    roster.begin();
    EXPECT_EQ(results(group), expected);
  });
}

TEST(Roster, GathersTextsAndMatchesMessagesWithinABatch) {
  run_ranks(3, [](Communicator& world) {
    Roster roster(world);
    RosterGroup group(roster, world);
    roster.begin();
    const std::string mine(static_cast<size_t>(world.rank()), 'x');
    const auto at_rank_0 = gather_texts_at_rank_0(group, "texts", mine);
    if (world.rank() == 0) {
      EXPECT_EQ(at_rank_0, (std::vector<std::string>{"", "x", "xx"}));
    }
    EXPECT_EQ(gather_texts(group, "texts", mine), (std::vector<std::string>{"", "x", "xx"}));
    EXPECT_EQ(broadcast_text(group, "text", mine, 2), "xx");
  });
}

TEST(Roster, SplitsTheWholeGroupIntoTheSameRoster) {
  run_ranks(3, [](Communicator& world) {
    Roster roster(world);
    RosterGroup group(roster, world);
    const auto whole = group.split(0, group.rank(), "whole"), alone = group.split(group.rank(), 0, "alone");
    EXPECT_NE(dynamic_cast<RosterGroup*>(whole.get()), nullptr);
    EXPECT_EQ(dynamic_cast<RosterGroup*>(alone.get()), nullptr);
    roster.begin();
    EXPECT_EQ(agree(*whole, "sum", int64_t{1}, ReduceOp::Sum), 3);
    EXPECT_EQ(agree(*alone, "sum", int64_t{1}, ReduceOp::Sum), 1);
  });
}

// Members leave one after another; each of the others is told in the round after, and counts the rest from then on.
TEST(Roster, TellsAllOthersOfALossInTheSameRound) {
  constexpr int kRanks = 5, kRounds = 6;
  std::mutex mutex;
  std::map<int, std::set<std::vector<int>>> told;  // by round: the members that ranks were told
  run_ranks(kRanks, [&](Communicator& world) {
    Roster roster(world);
    RosterGroup group(roster, world);
    roster.begin();
    for (int round = 0; round < kRounds; ++round) {
      if (world.rank() == kRanks - 1 - round && world.rank() >= 2) return;  // its endpoint closes
      for (;;) {
        try {
          EXPECT_EQ(agree(group, "rank", int64_t{group.rank()}, ReduceOp::Max), group.size() - 1);
          break;
        } catch (const MembersLost&) {
          const std::scoped_lock lock(mutex);
          told[round].insert(roster.members());
        }
      }
    }
    EXPECT_EQ(roster.members(), (std::vector<int>{0, 1}));
  });
  const std::map<int, std::set<std::vector<int>>> expected{{0, {{0, 1, 2, 3}}}, {1, {{0, 1, 2}}}, {2, {{0, 1}}}};
  EXPECT_EQ(told, expected);
}

}  // namespace
}  // namespace braid::comm::tests::roster_test
