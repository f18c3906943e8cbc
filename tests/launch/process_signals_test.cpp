// Signals to process ranks and their caller: of children's deaths, of the terminal and of kill.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "tests/launch/forked.h"
#include "tests/support/shared_array.h"

namespace braid::launch::tests::process_signals_test {
namespace {

constexpr double kSoon = 30;  // seconds; far more than it takes on a busy machine

// Gives signals their usual effect, also if the tests were started with some ignored (nohup, background jobs).
void let_signals_through() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGTSTP}) std::signal(signal, SIG_DFL);
}

// Starts a program of its own, killed when it hangs. Its exit code is what it returns.
template <class Program>
pid_t started(const Program& program) {
  const pid_t process = fork();
  if (process != 0) return process;
  alarm(kTooLongSeconds);
  setpgid(0, 0);
  let_signals_through();
  _exit([&]() noexcept { return program(); }());
}

int status_of(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return status;
}

// Once is enough: it may be over when somebody looks again.
template <class Condition>
bool comes_true(const Condition& condition) {
  const double begin = now_seconds();
  while (!condition()) {
    if (now_seconds() - begin > kSoon) return false;
    std::this_thread::yield();
  }
  return true;
}

void reap_any(int) {
  const int saved = errno;
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  errno = saved;
}

struct sigaction ignoring() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  return action;
}

struct sigaction keeping_no_zombies() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  action.sa_flags = SA_NOCLDWAIT;
  return action;
}

struct sigaction reaping_any() {
  struct sigaction action {};
  action.sa_handler = reap_any;
  action.sa_flags = SA_RESTART;
  return action;
}

// 0, or the number of the expectation that did not hold.
int ranks_that_return_and_that_die() {
  run_process_ranks(2, [](Communicator& world) { world.barrier().wait_host(); });
  try {
    run_process_ranks(2, [](Communicator& world) {
      if (world.rank() == 1) raise(SIGKILL);
      world.barrier().wait_host();
    });
    return 1;
  } catch (const CommError& error) {
    if (error.failure().rank != 1) return 2;
  }
  try {
    run_process_ranks(2, [](Communicator& world) {
      if (world.rank() == 1) throw RunError("by design");
      world.barrier().wait_host();
    });
  } catch (const RunError& error) {
    return std::string(error.what()) == "by design" ? 0 : 3;
  }
  return 4;
}

TEST(SignalsOfChildren, may_be_ignored_or_answered_by_a_wait_for_any_child) {
  for (const auto& action : {ignoring(), keeping_no_zombies(), reaping_any()}) {
    const pid_t caller = started([&] {
      sigaction(SIGCHLD, &action, nullptr);
      return ranks_that_return_and_that_die();
    });
    EXPECT_EQ(status_of(caller), 0);
  }
}

TEST(Signals, reach_the_ranks_and_then_the_caller) {
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) {
    SharedArray<int> ranks(2), ready;
    const pid_t caller = started([&] {
      run_process_ranks(2, [&](Communicator& world) {
        ranks[world.rank()] = getpid();
        ++ready[0];
        for (;;) pause();
      });  // the signal comes before the error
      return 0;
    });
    while (ready[0] < 2) std::this_thread::yield();
    kill(caller, signal);
    const int status = status_of(caller);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    for (int rank : {0, 1}) EXPECT_EQ(kill(ranks[rank], 0), -1) << "rank " << rank << " lives";
  }
}

// Counts of the interrupts and terminations that a rank received; handlers reach nothing else.
volatile std::sig_atomic_t interrupts = 0, terminations = 0;

struct Counts {
  SharedArray<int> interrupts{2};  // by rank
  SharedArray<int64_t> looks{2};   // at them
};

// Two ranks that count until they are told to end.
void count_signals(const Counts& counts) {
  run_process_ranks(2, [&](Communicator& world) {
    std::signal(SIGINT, [](int) { interrupts = interrupts + 1; });
    std::signal(SIGTERM, [](int) { terminations = terminations + 1; });
    for (; terminations == 0; ++counts.looks[world.rank()]) counts.interrupts[world.rank()] = interrupts;
    counts.interrupts[world.rank()] = interrupts;
  });
}

// Interrupts some times, each after the one before has been counted, then ends. The caller is stopped meanwhile, so
// that a rank has counted what reaches it without the caller before the caller can pass anything on.
void expect_each_counted_once(pid_t caller, const Counts& counts, const std::function<void()>& interrupt) {
  constexpr int kSome = 5, kSurelySeen = 1000;
  while (counts.looks[0] == 0 || counts.looks[1] == 0) std::this_thread::yield();
  for (int sent = 1; sent <= kSome; ++sent) {
    kill(caller, SIGSTOP);
    waitpid(caller, nullptr, WUNTRACED);
    interrupt();
    for (int rank : {0, 1}) {
      const int64_t seen = counts.looks[rank] + kSurelySeen;
      EXPECT_TRUE(comes_true([&] { return counts.looks[rank] >= seen; }));
    }
    kill(caller, SIGCONT);
    EXPECT_TRUE(comes_true([&] { return counts.interrupts[0] >= sent && counts.interrupts[1] >= sent; }));
  }
  kill(caller, SIGTERM);
  const int status = status_of(caller);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  for (int rank : {0, 1}) EXPECT_EQ(counts.interrupts[rank], kSome) << "rank " << rank;
}

TEST(Signals, reach_each_rank_once_whether_sent_to_the_caller_or_to_its_process_group) {
  for (int sign : {1, -1}) {
    const Counts counts;
    const pid_t caller = started([&] {
      count_signals(counts);
      return 0;
    });
    expect_each_counted_once(caller, counts, [&] { kill(sign * caller, SIGINT); });
  }
}

TEST(Signals, of_a_terminal_reach_each_rank_once) {
  const Counts counts;
  int terminal = -1;
  const pid_t caller = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (caller == 0) {
    alarm(kTooLongSeconds);
    let_signals_through();
    [&]() noexcept { count_signals(counts); }();
    _exit(0);
  }
  expect_each_counted_once(caller, counts, [&] { EXPECT_EQ(write(terminal, "\x03", 1), 1); });  // Ctrl-C
  close(terminal);
}

// Counts of handled signals: by the process that installed the handler, and by its ranks.
struct Handled {
  SharedArray<int> by_caller, by_ranks;
  pid_t caller = getpid();
};
const Handled* handled = nullptr;  // handlers reach nothing else

TEST(Signals, that_are_the_callers_reach_it_at_once_and_no_rank) {
  SharedArray<int> ready;
  const pid_t caller = started([&] {
    const Handled told;
    handled = &told;
    std::signal(SIGTERM, [](int) { ++(getpid() == handled->caller ? handled->by_caller : handled->by_ranks)[0]; });
    const auto body = [&](Communicator& world) {
      ++ready[0];
      while (told.by_caller[0] + told.by_ranks[0] == 0) std::this_thread::yield();
      world.barrier().wait_host();
    };
    run_process_ranks(2, body, {.signals = SignalsTo::Caller});
    return told.by_caller[0] == 1 && told.by_ranks[0] == 0 ? 0 : 1;
  });
  while (ready[0] < 2) std::this_thread::yield();
  kill(caller, SIGTERM);
  EXPECT_EQ(status_of(caller), 0);
}

// As the kernel abbreviates it: T stopped, S asleep; 0 when there is no such process.
char state_of(pid_t process) {
  std::string line;
  std::getline(std::ifstream(cat("/proc/", process, "/stat")), line);
  const size_t name_end = line.rfind(") ");
  return name_end == std::string::npos ? '\0' : line[name_end + 2];
}

TEST(Signals, stop_the_ranks_with_the_caller_and_no_deadline_passes_meanwhile) {
  constexpr double kDeadlineSeconds = 3;
  SharedArray<int> ranks(2), ready, go;
  const pid_t caller = started([&] {
    const auto body = [&](Communicator& world) {
      ranks[world.rank()] = getpid();
      ++ready[0];
      while (world.rank() == 1 && go[0] == 0) std::this_thread::yield();
      world.barrier().wait_host();
    };
    run_process_ranks(2, body, {.deadline_seconds = kDeadlineSeconds});
    return 0;
  });
  while (ready[0] < 2) std::this_thread::yield();
  kill(caller, SIGTSTP);
  int status = 0;
  waitpid(caller, &status, WUNTRACED);
  EXPECT_TRUE(WIFSTOPPED(status)) << status;
  for (int rank : {0, 1}) EXPECT_TRUE(comes_true([&] { return state_of(ranks[rank]) == 'T'; })) << "rank " << rank;
  std::this_thread::sleep_for(std::chrono::duration<double>(kDeadlineSeconds + 0.1));  // passes while they are stopped
  kill(caller, SIGCONT);
  const auto has_looked_again = [&] { return state_of(ranks[0]) != 'T' && state_of(ranks[0]) != 'R'; };
  EXPECT_TRUE(comes_true(has_looked_again));
  go[0] = 1;
  EXPECT_EQ(status_of(caller), 0);
}

}  // namespace
}  // namespace braid::launch::tests::process_signals_test
