// Two nodes, of which one is busy between rounds: in processes, since what a process computes is looked at.
#include "braid/launch/heartbeat_thread.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "braid/launch/job_rounds.h"
#include "tests/control/nodes_of_a_job.h"
#include "tests/launch/forked.h"
#include "tests/support/thread_limit.h"

namespace braid::launch::tests::heartbeat_thread_test {
namespace {

constexpr double kProgressSeconds = 0.1;  // of which a node at work has ten times as long
constexpr double kBusySeconds = 2;

void compute() {
  for (const double end = now_seconds() + kBusySeconds; now_seconds() < end;) continue;
}
void stand_still() { poll(nullptr, 0, 1000 * static_cast<int>(kBusySeconds)); }

// Returns the message of node 0 in a round for which the other is not ready before `work` is done.
std::string heard_by_node_0(void (*work)()) {
  std::vector<control::JoinOptions> all = job_options(2);
  for (control::JoinOptions& join : all) join.heartbeat_seconds = 0.3;
  const auto node = [&](Communicator& place) -> std::string {
    const auto control = control::join_job(in_child(all[static_cast<size_t>(place.rank())]));
    JobRounds rounds(*control, kProgressSeconds);
    if (place.rank() == 1) work();
    try {
      return rounds.exchange(cat("word of ", place.rank()))[1];
    } catch (const CommError& error) {
      return error.failure().why;
    }
  };
  return values_by_rank(ProcessLauncher(), 2, node, {.threads_per_rank = 1})[0];
}

TEST(HeartbeatThread, who_computes_is_not_lost) { EXPECT_EQ(heard_by_node_0(compute), "word of 1"); }

TEST(HeartbeatThread, who_stands_still_is_lost) {
  EXPECT_TRUE(holds(heard_by_node_0(stand_still), {"node 1 on h1 was silent for 0."}));
}

TEST(HeartbeatThread, of_its_thread_nothing_is_left) {
  NodesOfAJob job(job_options(2));
  const auto num_threads = [] { return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/task")); };
  const auto before = num_threads();
  for (int turn = 0; turn < 200; ++turn) {
    HeartbeatThread stand_in(job[1], 0);
    stand_in.leave();
    ASSERT_EQ(num_threads(), before) << turn;
  }
}

TEST(HeartbeatThread, that_cannot_start_its_thread_leaves_nothing_open) {
  NodesOfAJob job(job_options(2));
  const auto num_open = [] { return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd")); };
  const auto before = num_open();
  const ThreadLimit none(0);
  try {
    const HeartbeatThread stand_in(job[1], 0);
    FAIL();
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "cannot start a thread for heartbeats: Resource temporarily unavailable");
  }
  EXPECT_EQ(num_open(), before);
}

TEST(HeartbeatThread, what_was_said_meanwhile_is_handed_over) {
  NodesOfAJob job(job_options(2));
  job.hold(1);
  HeartbeatThread stand_in(job[1], 0);
  job[0].broadcast("word");
  job.advance_for(0.1);
  job[0].broadcast("another");
  job.advance_for(0.1);
  std::vector<std::string> words;
  for (const control::JobEvent& event : stand_in.leave()) words.push_back(event.bytes);
  for (const control::JobEvent& event : job[1].advance()) words.push_back(event.bytes);  // had not come yet
  EXPECT_EQ(words, (std::vector<std::string>{"word", "another"}));
}

}  // namespace
}  // namespace braid::launch::tests::heartbeat_thread_test
