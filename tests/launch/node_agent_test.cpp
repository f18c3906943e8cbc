// A node's part in a launch without a world of ranks: one whose only rank asks its supervisor, two whose ranks are
// looked at.
#include "braid/launch/node_agent.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "braid/control/join_job.h"
#include "braid/launch/rank_life.h"
#include "braid/launch/rank_outcome.h"
#include "braid/launch/supervisor.h"
#include "tests/launch/forked.h"
#include "tests/support/carried_job.h"

namespace braid::launch::tests::node_agent_test {
namespace {

// A node of two, whose words the test carries.
class CarriedControl final : public control::JobControl {
 public:
  explicit CarriedControl(int node) : node_(node) {}

  int node() const override { return node_; }
  const std::vector<control::JobNode>& nodes() const override { return nodes_; }
  void broadcast(const std::string&) override {}
  void report_progress(const std::string& bytes) override { reported = bytes; }
  int watch(std::vector<pollfd>&) const override { return 1000; }
  std::vector<control::JobEvent> advance() override { return std::exchange(heard, {}); }
  void leave_to_child() override {}

  std::string reported;
  std::vector<control::JobEvent> heard;

 private:
  const int node_;
  const std::vector<control::JobNode> nodes_{{"h0", 1}, {"h1", 1}};
};

// Two nodes with a rank each.
class SignsOfNodes : public testing::Test {
 protected:
  static constexpr double kProgressSeconds = 0.01;
  struct Node {
    explicit Node(int number) : control(number), rounds(control) {}

    // Begins the next launch.
    void begin() {
      rounds.begin();
      supervisor.reset();
      board.emplace(1);
      launch.emplace(rounds, *board, node_of_rank, kProgressSeconds);
      supervisor.emplace(Supervisor::Parts{*board, *board, signals, *launch}, Supervisor::Patience{1});
      supervisor->start(rounds.node(), [](int) noexcept {
        for (;;) pause();
      });
    }
    void look(const RankSample& signs) { launch->look(*supervisor, {signs}); }

    CarriedControl control;
    JobRounds rounds;
    SignalRelay signals{std::vector<int>()};
    const std::vector<int> node_of_rank{0, 1};
    std::optional<comm::RankBoard> board;
    std::optional<NodeAgent> launch;
    std::optional<Supervisor> supervisor;
  };

  // The last report of node 1 reaches node 0, which looks twice, so late that a rank without a sign hangs.
  void node_0_looks(const RankSample& own) {
    zero_.control.heard.push_back({control::JobEvent::Kind::Progress, 1, one_.control.reported});
    for (int look = 0; look < 2; ++look) {
      zero_.rounds.take_events();
      zero_.look(own);
      poll(nullptr, 0, static_cast<int>(20 * 1000 * kProgressSeconds));
    }
    zero_.look(own);
  }

  const RankSample works_{.held_outside = true}, waits_{.waits = true}, shows_nothing_{};
  Node zero_{0}, one_{1};
};

TEST_F(SignsOfNodes, of_an_earlier_launch_say_nothing_of_this_one) {
  one_.begin();
  one_.look(shows_nothing_);
  zero_.begin();
  zero_.begin();
  node_0_looks(works_);
  EXPECT_FALSE(zero_.board->failed()) << zero_.board->failure()->why;
  one_.begin();
  one_.look(shows_nothing_);
  node_0_looks(works_);
  EXPECT_TRUE(zero_.board->failed());  // these are of this launch
}

// It prepares itself, perhaps for long.
TEST_F(SignsOfNodes, who_waits_for_a_node_that_has_not_come_does_not_hang) {
  zero_.begin();
  node_0_looks(waits_);
  EXPECT_FALSE(zero_.board->failed()) << zero_.board->failure()->why;
  one_.begin();
  one_.look(waits_);
  node_0_looks(waits_);
  EXPECT_TRUE(zero_.board->failed());  // all wait
}

// Returns the outcome of the only rank of a job, as its node receives it.
std::string outcome_of(void (*life)(int line) noexcept) {
  const auto solo = control::make_solo_job({"here", 1});
  JobRounds rounds(*solo);
  rounds.begin();
  comm::RankBoard board(1);
  const std::vector<int> node_of_rank{0};
  NodeAgent node(rounds, board, node_of_rank, 0);
  SignalRelay signals({});
  Supervisor supervisor({board, board, signals, node}, {1});
  supervisor.start(0, life);
  supervisor.run();
  EXPECT_FALSE(node.failure()) << node.failure()->why;
  return RankOutcome::value(node.outcomes().at(0));
}

// Ranks of a host that is ready long before another ask again and again.
TEST(NodeAgent, questions_that_were_given_up_are_not_answered) {
  const std::string told = outcome_of([](int line) noexcept {
    alarm(kTooLongSeconds);
    StoreOverStream store(line);
    for (int question = 0; question < 300; ++question) store.get("address", 0);
    store.set("address", std::string(4096, 'a'));
    poll(nullptr, 0, 300);  // meanwhile answers are not read; a line has room for some fifty
    store.leave(RankOutcome::returned(store.get("address", kDeadline).value_or("")));
  });
  EXPECT_EQ(told, std::string(4096, 'a'));
}

TEST(NodeAgent, the_last_word_of_a_rank_is_whole_whatever_its_threads_say) {
  const std::string told = outcome_of([](int line) noexcept {
    alarm(kTooLongSeconds);
    StoreOverStream store(line);
    std::atomic<int> said = 0;
    std::thread([&] {
      for (;;) store.set(cat("address ", ++said), std::string(4096, 'b'));
    }).detach();
    while (said < 10) std::this_thread::yield();
    store.leave(RankOutcome::returned(std::string(8 << 20, 'a')));
  });
  EXPECT_TRUE(told == std::string(8 << 20, 'a')) << told.size();
}

// The second of two nodes. Its only rank runs `life`. The first node reports that its own rank was aborted, as an MPI
// does when a peer has died.
class PeerOfAbortedRank {
 public:
  explicit PeerOfAbortedRank(void (*life)(int line) noexcept) {
    rounds_.begin();
    node_.emplace(rounds_, board_, node_of_rank_, 0);
    supervisor_.emplace(Supervisor::Parts{board_, board_, signals_, *node_}, Supervisor::Patience{1});
    supervisor_->start(1, life);
  }

  // Returns when the kernel is ending the rank.
  void await_exit() const {
    while (!supervisor_->any_exits()) poll(nullptr, 0, 1);
  }
  // Returns the failure of the job once the node has received the report.
  comm::Failure failure() {
    const comm::Failure abort{0, 0, "killed by signal 6 (Aborted)"};
    job_.receive(0, unframed(control::framed_message(
                        control::JobBroadcast{0, round_message_bytes({rounds_.number(), RanksFailed{abort}})})));
    while (!node_->failure()) advance();
    for (int turn = 0; turn < 2; ++turn) advance();  // this node's own failure comes back to it
    return *node_->failure();
  }

 private:
  void advance() {
    node_->advance(*supervisor_);
    poll(nullptr, 0, 1);
  }

  CarriedJob job_{1, {{"h0", 1}, {"h1", 1}}};
  JobRounds rounds_{job_};
  comm::RankBoard board_{1};
  const std::vector<int> node_of_rank_{0, 1};
  SignalRelay signals_{std::vector<int>()};
  std::optional<NodeAgent> node_;
  std::optional<Supervisor> supervisor_;
};

constexpr const char* kBoth = "killed by signal 6 (Aborted); rank 1: killed by signal 9 (Killed), process ";

TEST(NodeAgent, a_rank_that_died_is_named_though_another_node_reports_first) {
  PeerOfAbortedRank peer([](int) noexcept { raise(SIGKILL); });
  siginfo_t ended;
  ASSERT_EQ(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
  const comm::Failure failure = peer.failure();
  EXPECT_EQ(failure.rank, 0);
  EXPECT_TRUE(failure.why.starts_with(kBoth)) << failure.why;
}

// Ends the calling thread, the first of its process, and then the process after `milliseconds`. Meanwhile the kernel
// shows the process as exiting. A process with much memory is in that state while the kernel frees it.
void exit_for(int milliseconds) {
  std::thread([milliseconds] {
    poll(nullptr, 0, milliseconds);
    raise(SIGKILL);
  }).detach();
  syscall(SYS_exit, 0);
}

TEST(NodeAgent, a_rank_that_is_exiting_is_named_though_another_node_reports_first) {
  PeerOfAbortedRank peer([](int) noexcept { exit_for(200); });
  peer.await_exit();
  const comm::Failure failure = peer.failure();
  EXPECT_TRUE(failure.why.starts_with(kBoth)) << failure.why;
}

TEST(NodeAgent, a_rank_that_exits_for_ever_holds_up_no_failure) {
  PeerOfAbortedRank peer([](int) noexcept { exit_for(-1); });
  peer.await_exit();
  EXPECT_EQ(peer.failure().why, "killed by signal 6 (Aborted)");
}

}  // namespace
}  // namespace braid::launch::tests::node_agent_test
