// Process ranks that fail at random: whatever happens to whom at whichever call, nobody hangs and the right one is
// blamed.
#include <gtest/gtest.h>

#include <csignal>
#include <random>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/launch/hosts_launcher.h"
#include "tests/comm/values.h"
#include "tests/launch/forked.h"

namespace braid::launch::tests::accident_test {
namespace {

// A rank fails in one of five ways at a random place of a random sequence of calls.
struct Accident {
  enum class Way { Throw, Abort, Leave, Mismatch, Die };
  int ranks, culprit, calls, when;
  Way way;
};

Accident accident(uint64_t seed) {
  std::mt19937_64 draw(seed);
  const auto below = [&](int limit) { return static_cast<int>(draw() % limit); };
  const int ranks = 2 + below(4), calls = 1 + below(12);
  return {ranks, below(ranks), calls, below(calls), static_cast<Accident::Way>(seed % 5)};
}

void run_to_the_accident(Communicator& world, const Accident& a, uint64_t seed) {
  std::mt19937_64 draw(seed);  // the same calls on every rank
  auto half = world.split(world.rank() % 2, 0, "half");
  std::vector<Work> works;
  for (int i = 0; i < a.calls; ++i) {
    Communicator& group = draw() % 2 ? world : *half;
    const int64_t n = group.size();
    int64_t chunk = static_cast<int64_t>(draw() % 100000);
    const uint64_t kind = draw() % 3;
    if (world.rank() == a.culprit && i == a.when) {
      if (a.way == Accident::Way::Throw) throw RunError("by accident");
      if (a.way == Accident::Way::Abort) world.abort("by accident");
      if (a.way == Accident::Way::Leave) return;
      if (a.way == Accident::Way::Mismatch) ++chunk;
      if (a.way == Accident::Way::Die) die();
    }
    if (kind == 0) works.push_back(group.all_reduce(floats(chunk), ReduceOp::Sum));
    if (kind == 1) works.push_back(group.all_gather(floats(n * chunk), floats(chunk)));
    if (kind == 2) works.push_back(group.reduce_scatter(floats(chunk), floats(n * chunk), ReduceOp::Max));
    if (draw() % 2) works[draw() % works.size()].wait_host();
  }
  for (Work& work : works) work.wait_host();
  world.barrier().wait_host();
}

void check_failure(const Accident& a, const CommFailure& failure) {
  if (a.way == Accident::Way::Mismatch) {
    const std::string blamed = cat("where rank ", a.culprit, " ");
    EXPECT_TRUE(failure.rank == a.culprit || failure.why.find(blamed) != std::string::npos) << failure.why;
    return;
  }
  const char* start = a.way == Accident::Way::Abort ? "by accident"
                      : a.way == Accident::Way::Die ? "killed by signal 9"
                                                    : "has ended";
  EXPECT_EQ(failure.rank, a.culprit) << failure.why;
  EXPECT_TRUE(failure.why.starts_with(start)) << failure.why;
}

void check_accidents(const Launcher& start, int ranks_per_node, uint64_t count) {
  for (uint64_t seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Accident a = accident(seed);
    const double begin = now_seconds();
    try {
      run_forked(
          a.ranks, [&](Communicator& world) { run_to_the_accident(world, a, seed); },
          {.deadline_seconds = kDeadline, .ranks_per_node = ranks_per_node}, start);
      EXPECT_EQ(a.way, Accident::Way::Mismatch);  // alone in its half, the odd call agrees with everybody's
    } catch (const CommError& error) {
      EXPECT_NE(a.way, Accident::Way::Throw);
      check_failure(a, error.failure());
    } catch (const RunError& error) {
      EXPECT_EQ(a.way, Accident::Way::Throw);
      EXPECT_STREQ(error.what(), "by accident");
    }
    EXPECT_LT(now_seconds() - begin, kSoon);
  }
}

TEST(Accidents, over_shared_memory) { check_accidents(ProcessLauncher(), 0, full_run() ? 2000 : 100); }
TEST(Accidents, over_tcp) { check_accidents(LoopbackLauncher(CommEngine::Tcp), 0, full_run() ? 500 : 10); }
TEST(Accidents, over_tcp_in_two_levels) {
  check_accidents(LoopbackLauncher(CommEngine::Tcp), 2, full_run() ? 500 : 15);
}
TEST(Accidents, over_gloo) { check_accidents(LoopbackLauncher(CommEngine::Gloo), 0, full_run() ? 500 : 10); }

}  // namespace
}  // namespace braid::launch::tests::accident_test
