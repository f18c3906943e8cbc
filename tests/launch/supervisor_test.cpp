// A rank that the kernel does not let die.
#include "braid/launch/supervisor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <thread>

#include "braid/base/host.h"
#include "tests/launch/forked.h"
#include "tests/support/shared_array.h"

namespace braid::launch::tests::supervisor_test {
namespace {

class Nothing final : public SupervisorDelegate {
 public:
  int watch(std::vector<pollfd>&) const override { return std::numeric_limits<int>::max(); }
  void advance(Supervisor&) override {}
  bool has_outcome(Supervisor&, int) override { return false; }
  void look(Supervisor&, const std::vector<RankSample>&) override {}
  bool has_work() const override { return false; }
  void leave_to_child() override {}
};

// A tracer that is told of exits holds a process in the kernel when it is to die, as an uninterruptible wait does.
TEST(Supervisor, leaves_a_rank_behind_that_does_not_die) {
  comm::RankBoard board(2);
  SharedArray<int> process;
  std::atomic<bool> is_left{false};
  std::atomic<int> refused{0};
  Nothing nothing;
  SignalRelay signals({});
  Supervisor supervisor({board, board, signals, nothing}, {.grace_seconds = 0.01, .death_seconds = 0.2});
  const auto wait_to_be_killed = [&](int rank) {
    return [&process, rank](int) {
      prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
      if (rank == 1) process[0] = getpid();
      for (;;) pause();
    };
  };
  for (const int rank : {0, 1}) supervisor.start(rank, wait_to_be_killed(rank));
  std::jthread tracer([&] {
    while (process[0] == 0) poll(nullptr, 0, 1);
    if (ptrace(PTRACE_SEIZE, process[0].load(), nullptr, PTRACE_O_TRACEEXIT) != 0) refused = errno;
    board.set_first({0, 0, "fails"});
    while (!is_left) poll(nullptr, 0, 1);
  });  // its end lets the process go
  supervisor.run();
  is_left = true;
  tracer.join();
  if (refused != 0) GTEST_SKIP() << "no ptrace here: " << std::strerror(refused);
  EXPECT_FALSE(supervisor.any_runs());
  EXPECT_EQ(supervisor.left_behind(), cat("rank 1, process ", process[0].load(), " on ", host_name(),
                                          ", does not die of SIGKILL and is left behind: it waits in ptrace_stop"));
  EXPECT_EQ(waitpid(process[0].load(), nullptr, 0), process[0].load());
}

TEST(Supervisor, has_words_for_a_rank_that_has_begun_nothing) {
  comm::RankBoard board(1);
  Nothing nothing;
  SignalRelay signals({});
  Supervisor supervisor({board, board, signals, nothing}, {.grace_seconds = 1});
  supervisor.start(0, [](int) {
    for (;;) pause();
  });
  EXPECT_EQ(supervisor.state(0), "rank 0 at its activity 0, which has not begun");
}

}  // namespace
}  // namespace braid::launch::tests::supervisor_test
