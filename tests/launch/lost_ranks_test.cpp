// Process ranks that are killed once their loss is allowed: the others learn of it in a round and return their values.
#include <gtest/gtest.h>

#include <csignal>
#include <random>

#include "braid/base/errors.h"
#include "braid/comm/agree.h"
#include "braid/comm/roster.h"
#include "braid/launch/process_ranks.h"
#include "tests/comm/failures.h"
#include "tests/comm/values.h"
#include "tests/support/sampled.h"
#include "tests/support/shared_array.h"

namespace braid::launch::tests::lost_ranks_test {
namespace {

using comm::MembersLost;
using comm::Roster;
using comm::RosterGroup;

constexpr int kRanks = 4, kRounds = 60;

// Makes an agreement again until no member is lost in it.
int64_t agreed_count(Communicator& group) {
  for (;;) {
    try {
      return comm::agree(group, "count", int64_t{1}, ReduceOp::Sum);
    } catch (const MembersLost&) {
    }
  }
}

// Messages of more than a ring's bytes: a rank dies while others read a part of its message, or wait to write to it.
void send_much(Roster& roster) {
  for (;;) {
    try {
      roster.round(comm::tests::empty<double>(1 << 17));
      return;
    } catch (const MembersLost&) {
    }
  }
}

// Ranks 1 and 3 are killed by rank 2 at drawn moments.
void expect_others_go_on(unsigned seed) {
  SharedArray<int> processes, ended;
  const auto body = [&](Communicator& world) -> std::string {
    Roster roster(world);
    RosterGroup group(roster, world);
    std::mt19937 draws(seed);
    const int first = static_cast<int>(draws() % kRounds), second = static_cast<int>(draws() % kRounds);
    processes[world.rank()] = getpid();
    roster.begin();
    agreed_count(group);  // the loss of all is allowed
    for (int round = 0; round < kRounds; ++round) {
      if (world.rank() == 2 && round == first) kill(processes[1], SIGKILL);
      if (world.rank() == 2 && round == second) kill(processes[3], SIGKILL);
      round % 8 == 0 ? send_much(roster) : static_cast<void>(agreed_count(group));
    }
    while (roster.members().size() > 2) agreed_count(group);  // until the last is noticed
    ++ended[0];
    return "whole";
  };
  const auto values = ProcessLauncher().run(kRanks, body, {.deadline_seconds = 20});
  EXPECT_EQ(values, (std::vector<std::string>{"whole", "", "whole", ""})) << "seed " << seed;
  EXPECT_EQ(ended[0], 2);
}

TEST(LostRanks, OthersGoOnWheneverRanksAreKilled) {
  std::vector<unsigned> seeds(200);
  for (unsigned i = 0; i < seeds.size(); ++i) seeds[i] = i;
  for (const unsigned seed : sampled(seeds, 20)) expect_others_go_on(seed);
}

// Returns the failure of a world in which `rank` is killed.
CommFailure failure_after(int rank, const std::function<void(Roster&)>& begin) {
  return comm::tests::failure_in([&] {
    run_process_ranks(kRanks, [&](Communicator& world) {
      Roster roster(world);
      RosterGroup group(roster, world);
      begin(roster);
      agreed_count(group);
      if (world.rank() == rank) raise(SIGKILL);
      agreed_count(group);
    });
  });
}

TEST(LostRanks, TheLossOfRank0FailsTheWorld) {
  const CommFailure failure = failure_after(0, [](Roster& roster) { roster.begin(); });
  EXPECT_EQ(failure.rank, 0);
  EXPECT_TRUE(failure.why.starts_with("killed by signal 9")) << failure.why;
}

TEST(LostRanks, ALossThatIsNotAllowedFailsTheWorld) {
  const CommFailure failure = failure_after(1, [](Roster&) {});
  EXPECT_EQ(failure.rank, 1);
  EXPECT_TRUE(failure.why.starts_with("killed by signal 9")) << failure.why;
}

// An error of a rank is no loss: it would come again on the ranks that take over its work.
TEST(LostRanks, ARankThatThrowsFailsTheWorld) {
  const auto run = [] {
    run_process_ranks(kRanks, [](Communicator& world) {
      Roster roster(world);
      RosterGroup group(roster, world);
      roster.begin();
      if (world.rank() == 1) throw RunError("a bad sample");
      agreed_count(group);
    });
  };
  EXPECT_THROW(run(), RunError);
}

}  // namespace
}  // namespace braid::launch::tests::lost_ranks_test
