// Invalid messages of other nodes in rounds: the receiving node names the sender and reports it.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <optional>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/packed.h"
#include "braid/launch/node_agent.h"
#include "braid/launch/rank_life.h"
#include "braid/launch/rank_outcome.h"
#include "braid/launch/supervisor.h"
#include "tests/launch/forked.h"
#include "tests/support/carried_job.h"

namespace braid::launch::tests::lying_nodes_test {
namespace {

constexpr int kHuge = 2'000'000'000;

std::vector<control::JobNode> three_nodes() { return {{"h0", 1}, {"h1", 1}, {"h2", 1}}; }

std::string word_of(RoundBody word, int round = 1) { return round_message_bytes({round, std::move(word)}); }
std::string said_by(int node, const std::string& bytes) {
  return unframed(control::framed_message(control::JobBroadcast{node, bytes}));
}
std::string said_to_root(const std::string& bytes) {
  return unframed(control::framed_message(control::JobBroadcastRequest{bytes}));
}
std::string reported(const RanksReport& report) {
  return unframed(control::framed_message(control::JobHeartbeat{ranks_report_bytes(report)}));
}

// Invalid messages, and the reason given for each.
std::vector<std::pair<std::string, std::string>> wrong_words() {
  return {
      {"", "has sent a malformed message"},
      {"one", "has sent a malformed message"},
      {word_of(RanksGone{}) + "x", "has sent a malformed message"},
      {std::string("\x01\0\0\0\x63", 5), "has sent a malformed message"},
      {word_of(RanksGone{}, kHuge), "has sent a message of round 2000000000"},
      {word_of(RanksGone{}, -5), "has sent a message of round -5"},
      {word_of(RankEnded{99, RankOutcome::returned("")}), "has sent an outcome of rank 99 where there are 3"},
      {word_of(RankEnded{-1, RankOutcome::returned("")}), "has sent an outcome of rank -1 where there are 3"},
      {word_of(RankEnded{1, ""}), "has sent a malformed outcome of rank 1"},
      {word_of(RankEnded{1, packed(Texts{"CommError", "op", "none", "none", "why"})}), "has sent a malformed outcome"},
      {word_of(RankEnded{1, packed(Texts{"value"})}), "has sent a malformed outcome"},
      {word_of(RankEnded{1, packed(Texts{})}), "has sent a malformed outcome"},
      {word_of(RanksFailed{{kHuge, -1, "why"}}), "has sent a failure of rank 2000000000 where there are 3"},
      {word_of(RanksFailed{{0, -7, "why"}}), "has sent a failure of rank -7 where there are 3"}};
}

std::string error_of_exchange(JobRounds& rounds) {
  try {
    rounds.exchange(std::string("mine"));
  } catch (const CommError& error) {
    return error.failure().why;
  }
  return "nothing was thrown";
}

testing::AssertionResult begins(const std::string& text, const std::string& with) {
  if (text.starts_with(with)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not begin with \"" << with << "\"";
}

TEST(LyingNodesRounds, node_0_names_who_says_what_cannot_be) {
  for (const auto& [bytes, why] : wrong_words()) {
    CarriedJob job(0, three_nodes());
    JobRounds rounds(job);
    job.receive(1, said_to_root(bytes));
    EXPECT_TRUE(begins(error_of_exchange(rounds), cat("node 1 on h1 ", why)));
    EXPECT_EQ(job.lost().size(), 1u);
  }
}

TEST(LyingNodesRounds, a_member_names_node_0_for_what_it_relays) {
  for (const auto& [bytes, why] : wrong_words()) {
    CarriedJob job(1, three_nodes());
    JobRounds rounds(job);
    job.receive(0, said_by(2, bytes));
    EXPECT_TRUE(begins(error_of_exchange(rounds), cat("node 0 on h0 has relayed a message of node 2, which ", why)));
  }
  for (const std::string& message :
       {said_by(99, word_of(RanksGone{})), unframed(control::framed_message(control::NodeFailure{99, "why"}))}) {
    CarriedJob job(1, three_nodes());
    JobRounds rounds(job);
    job.receive(0, message);
    EXPECT_EQ(error_of_exchange(rounds), "node 0 on h0 has named node 99 of 3 nodes");
  }
}

// Thrown on the thread of the HeartbeatThread it would end the process.
TEST(LyingNodesRounds, what_cannot_be_is_found_while_the_node_is_busy) {
  for (const auto& [bytes, why] : wrong_words()) {
    CarriedJob job(0, three_nodes());
    JobRounds rounds(job);
    job.receive(1, said_to_root(bytes));
    job.receive(2, unframed(control::framed_message(control::JobHeartbeat{"no signs"})));
    for (const double end = now_seconds() + 60; job.lost().size() < 2 && now_seconds() < end;) poll(nullptr, 0, 1);
    EXPECT_EQ(job.lost().size(), 2u);
    EXPECT_TRUE(begins(error_of_exchange(rounds), cat("node 1 on h1 ", why)));
  }
}

class ThrowingJob final : public control::JobControl {
 public:
  int node() const override { return 0; }
  const std::vector<control::JobNode>& nodes() const override { return nodes_; }
  void broadcast(const std::string&) override {}
  void report_progress(const std::string&) override {}
  int watch(std::vector<pollfd>&) const override { return 1; }
  std::vector<control::JobEvent> advance() override {
    thrown = true;
    throw RunError("no memory");
  }
  void leave_to_child() override {}

  std::atomic<bool> thrown{false};

 private:
  const std::vector<control::JobNode> nodes_ = three_nodes();
};

TEST(LyingNodesRounds, what_ends_the_heartbeat_thread_is_thrown_where_it_is_left) {
  ThrowingJob job;
  HeartbeatThread stand_in(job, 0);
  while (!job.thrown) poll(nullptr, 0, 1);
  EXPECT_THROW(stand_in.leave(), RunError);
}

TEST(LyingNodesRounds, an_exchange_is_one_answer_of_each) {
  const auto error_after = [](std::vector<RoundBody> words) {
    CarriedJob job(0, three_nodes());
    JobRounds rounds(job);
    job.receive(2, said_to_root(word_of(Contribution{packed(std::string("two"))})));
    for (RoundBody& word : words) job.receive(1, said_to_root(word_of(std::move(word))));
    return error_of_exchange(rounds);
  };
  const Contribution right{packed(std::string("one"))};
  EXPECT_EQ(error_after({right}), "nothing was thrown");
  EXPECT_EQ(error_after({Contribution{""}}), "node 1 on h1 has sent a malformed contribution");
  EXPECT_EQ(error_after({RanksGone{}}), "node 1 on h1 has sent a message about ranks while none run");
  CarriedJob job(0, three_nodes());
  JobRounds rounds(job);
  for (int time = 0; time < 2; ++time) job.receive(1, said_to_root(word_of(right)));
  EXPECT_EQ(error_of_exchange(rounds), "node 1 on h1 has contributed twice to one exchange");
}

struct Percent {
  int value = 0;
};
std::string contribution_fault(const Percent& percent) { return percent.value > 100 ? "has sent too much" : ""; }

TEST(LyingNodesRounds, the_value_of_an_answer_is_judged) {
  CarriedJob job(1, {{"h0", 1}, {"h1", 1}});
  JobRounds rounds(job);
  job.receive(0, said_by(0, word_of(Contribution{packed(Percent{101})})));
  EXPECT_THROW(rounds.exchange(Percent{1}), CommError);
  EXPECT_EQ(rounds.loss(), "node 0 on h0 has sent too much");
}

TEST(LyingNodesRounds, who_floods_a_later_round_is_lost) {
  CarriedJob job(0, three_nodes());
  JobRounds rounds(job);
  rounds.begin();
  const std::string word = said_to_root(word_of(ValueSet{"key", std::string(size_t{32} << 20, 'x')}, 2));
  for (int time = 0; time < 9 && rounds.lost_node() < 0; ++time) {
    job.receive(1, word);
    rounds.take_events();
  }
  EXPECT_EQ(rounds.loss(), "node 1 on h1 has sent more than the others can store");
}

// A launch of three nodes with a rank each, of which this node's does nothing.
class LyingNodesLaunch : public testing::Test {
 protected:
  void begin(int node) {
    supervisor.reset();
    launch.reset();
    rounds.reset();
    job.emplace(node, three_nodes());
    rounds.emplace(*job);
    rounds->begin();
    board.emplace(1);
    launch.emplace(*rounds, *board, node_of_rank, 0);
    supervisor.emplace(Supervisor::Parts{*board, *board, signals, *launch}, Supervisor::Patience{1});
    supervisor->start(node, [](int) noexcept {
      for (;;) pause();
    });
  }
  // Returns the failure that node 0 finds when node 1 sends `words`.
  std::string loss_after(std::vector<RoundBody> words) {
    begin(0);
    for (RoundBody& word : words) job->receive(1, said_to_root(word_of(std::move(word))));
    for (int turn = 0; turn < 2; ++turn) launch->advance(*supervisor);
    if (rounds->lost_node() < 0) return "nobody is lost";
    EXPECT_TRUE(launch->failure() && launch->failure()->why == rounds->loss());
    return rounds->loss();
  }
  std::string loss_after_report(const RanksReport& report) {
    begin(0);
    job->receive(1, reported(report));
    launch->advance(*supervisor);
    launch->look(*supervisor, {RankSample{}});
    return rounds->loss();
  }

  const std::vector<int> node_of_rank{0, 1, 2};
  std::optional<CarriedJob> job;
  std::optional<JobRounds> rounds;
  SignalRelay signals{std::vector<int>()};
  std::optional<comm::RankBoard> board;
  std::optional<NodeAgent> launch;
  std::optional<Supervisor> supervisor;
};

TEST_F(LyingNodesLaunch, signs_of_ranks_are_as_many_as_the_node_has) {
  EXPECT_EQ(loss_after_report({1, {RankSample{}}, {"rank 1 computes"}}), "");
  EXPECT_EQ(loss_after_report({1, {RankSample{}}, {}}), "node 1 on h1 has sent 1 samples and 0 states of 1 ranks");
  EXPECT_EQ(loss_after_report({1, {}, {}}), "node 1 on h1 has sent 0 samples and 0 states of 1 ranks");
  EXPECT_EQ(loss_after_report({1, std::vector<RankSample>(99), std::vector<std::string>(99)}),
            "node 1 on h1 has sent 99 samples and 99 states of 1 ranks");
}

TEST_F(LyingNodesLaunch, signs_of_ranks_are_numbers_that_can_be) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const RankSample& signs : {RankSample{.activities = -1}, RankSample{.io_bytes = -1},
                                  RankSample{.cpu_seconds = none}, RankSample{.slowest_step = -1}}) {
    EXPECT_EQ(loss_after_report({1, {signs}, {""}}), "node 1 on h1 has sent impossible samples of its ranks");
  }
  begin(0);
  std::string bytes = ranks_report_bytes({1, {RankSample{}}, {""}});
  bytes[sizeof(int) + sizeof(uint64_t)] = 2;  // neither true nor false
  job->receive(1, unframed(control::framed_message(control::JobHeartbeat{bytes})));
  launch->advance(*supervisor);
  EXPECT_EQ(rounds->loss(), "node 1 on h1 has sent a malformed report of its ranks");
}

TEST_F(LyingNodesLaunch, a_node_speaks_of_its_own_ranks) {
  const std::string value = RankOutcome::returned("value");
  EXPECT_EQ(loss_after({RankEnded{1, value}, RanksGone{}}), "nobody is lost");
  EXPECT_EQ(loss_after({RankEnded{2, value}}), "node 1 on h1 has sent the outcome of rank 2 of another node");
  EXPECT_EQ(loss_after({RankEnded{1, value}, RankEnded{1, value}}),
            "node 1 on h1 has sent the outcome of rank 1 twice");
  EXPECT_EQ(loss_after({RanksGone{}}), "node 1 on h1 has not sent the outcome of rank 1");
  EXPECT_EQ(loss_after({RanksFailed{{0, 2, "why"}}}),
            "node 1 on h1 has sent a failure that rank 2 of another node reports");
  EXPECT_EQ(loss_after({Contribution{"word"}}), "node 1 on h1 has sent a contribution while ranks run");
  const ValueSet large{"key", std::string(size_t{33} << 20, 'x')};
  EXPECT_EQ(loss_after({large, large}), "node 1 on h1 has set more values than the others can store");
}

TEST_F(LyingNodesLaunch, the_ranks_of_a_node_fail_once) {
  begin(0);
  for (int time = 0; time < 2; ++time) job->receive(1, said_to_root(word_of(RanksFailed{{1, 1, "why"}})));
  launch->advance(*supervisor);
  EXPECT_EQ(rounds->loss(), "node 1 on h1 has sent two failures");
  EXPECT_EQ(launch->failure()->why, "why");
}

// Nobody has said so but node 0.
TEST_F(LyingNodesLaunch, a_member_names_node_0_for_words_that_are_not_its_own) {
  begin(1);
  job->receive(0, said_by(1, word_of(RankEnded{2, RankOutcome::returned("")})));
  launch->advance(*supervisor);
  EXPECT_EQ(rounds->loss(),
            "node 0 on h0 has relayed a message of node 1, which has sent the outcome of rank 2 of another node");
}

// Returns why the only rank of a job failed, when it writes `bytes` to its supervisor.
std::string failure_where_rank_writes(std::string bytes) {
  static std::string written;  // what the rank, a copy of this process, writes
  written = std::move(bytes);
  const auto solo = control::make_solo_job({"here", 1});
  JobRounds rounds(*solo);
  rounds.begin();
  comm::RankBoard board(1);
  const std::vector<int> node_of_rank{0};
  NodeAgent node(rounds, board, node_of_rank, 0);
  SignalRelay signals({});
  Supervisor supervisor({board, board, signals, node}, {0.1});
  supervisor.start(0, [](int line) noexcept {
    alarm(kTooLongSeconds);
    write_all(line, written);
    for (;;) pause();
  });
  supervisor.run();
  return node.failure() ? cat("rank ", node.failure()->rank, ": ", node.failure()->why) : "no failure";
}

TEST(LyingRank, what_is_no_frame_fails_the_rank) {
  EXPECT_EQ(failure_where_rank_writes(*control::framed("none")), "rank 0: its line has a malformed frame");
  EXPECT_EQ(failure_where_rank_writes("\xff\xff\xff\xff"), "rank 0: its line has a frame that is too long");
  EXPECT_EQ(failure_where_rank_writes(frame_of(GetAnswer{1, "value"})),
            "rank 0: its line has an answer that only its supervisor gives");
  EXPECT_EQ(failure_where_rank_writes(frame_of(EndReport{"value"})), "rank 0: its line sends no valid outcome");
  EXPECT_EQ(failure_where_rank_writes(frame_of(SetRequest{"key", std::string(size_t{2} << 20, 'x')})),
            "rank 0: its line sets a value that is too long");
}

}  // namespace
}  // namespace braid::launch::tests::lying_nodes_test
