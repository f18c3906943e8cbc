// Ranks as processes: how they start, end, fail and are named, and that nothing of them is left.
#include "braid/launch/process_ranks.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "tests/comm/values.h"
#include "tests/launch/forked.h"
#include "tests/support/shared_array.h"

namespace braid::launch::tests::process_ranks_test {
namespace {

int num_open_files() {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) count += !file.path().empty();
  return count;
}

int num_mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("/dev/zero") != std::string::npos;
  return count;
}

void expect_no_children() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

template <class Error>
std::string what_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(RunProcessRanks, each_rank_is_a_process_of_its_own_with_its_share_of_the_cores) {
  SharedArray<int> processes(3), threads(3);
  const auto body = [&](Communicator& world) {
    processes[world.rank()] = getpid();
    threads[world.rank()] = at::get_num_threads();
    char name[16];
    prctl(PR_GET_NAME, name);
    EXPECT_EQ(std::string(name), cat("rank ", world.rank()));
    EXPECT_EQ(world.size(), 3);
    EXPECT_EQ(world.name(), "world");
  };
  run_forked(3, body, {.threads_per_rank = 2});
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_NE(processes[rank], 0);
    EXPECT_NE(processes[rank], getpid());
    EXPECT_NE(processes[rank], processes[(rank + 1) % 3]);
    EXPECT_EQ(threads[rank], 2);
  }
  run_forked(64, [&](Communicator&) { threads[0] = at::get_num_threads(); });
  EXPECT_EQ(threads[0], 1) << "of 64 on few cores";
}

TEST(RunProcessRanks, leaves_no_process_no_file_and_no_mapping_however_it_ends) {
  const int files = num_open_files(), mappings = num_mappings();
  for (int way = 0; way < 3; ++way) {
    const auto body = [=](Communicator& world) {
      auto pair = world.split(0, 0, "pair");
      if (way == 1 && world.rank() == 1) throw RunError("by design");
      if (way == 2 && world.rank() == 1) kill(getpid(), SIGKILL);
      pair->barrier().wait_host();
    };
    if (way == 0) {
      run_forked(2, body);
    } else if (way == 1) {
      EXPECT_THROW(run_forked(2, body), RunError);
    } else {
      EXPECT_THROW(run_forked(2, body), CommError);
    }
    expect_no_children();
    EXPECT_EQ(num_open_files(), files);
    EXPECT_EQ(num_mappings(), mappings);
  }
}

TEST(RunProcessRanks, throws_what_the_rank_that_failed_first_threw) {
  for (int culprit = 0; culprit < 3; ++culprit) {
    const auto fail_with = [=](auto error) {
      return [=] {
        run_forked(3, [=](Communicator& world) {
          if (world.rank() == culprit) throw error;
          world.barrier().wait_host();
        });
      };
    };
    const ConfigError config({{"model.heads", "6", "must divide 4", "8"}, {"", "", "is odd", ""}});
    EXPECT_EQ(what_of<ConfigError>(fail_with(config)), config.what());
    EXPECT_EQ(what_of<RunError>(fail_with(RunError("the loss is not finite"))), "the loss is not finite");
    EXPECT_EQ(what_of<std::runtime_error>(fail_with(std::out_of_range("the weather"))), "the weather");
    EXPECT_EQ(what_of<std::runtime_error>(fail_with(7)), "threw something that is no std::exception");
  }
}

TEST(RunProcessRanks, throws_the_error_of_a_rank_whose_peer_only_reports_it) {
  const auto body = [](Communicator& world) {
    if (world.rank() == 0) throw CommError({"barrier #0 on world", 1, 0, "has ended"});
    try {
      for (;;) world.barrier().wait_host();
    } catch (const CommError&) {
      throw RunError("the disk is full");
    }
  };
  EXPECT_EQ(what_of<RunError>([&] { run_forked(2, body); }), "the disk is full");
}

TEST(RunProcessRanks, peers_of_a_failed_rank_learn_its_rank_and_reason) {
  SharedArray<int> told;
  const auto body = [&](Communicator& world) {
    if (world.rank() == 2) throw std::runtime_error("disk full");
    try {
      world.barrier().wait_host();
    } catch (const CommError& error) {
      told[0] += error.failure().rank == 2 && error.failure().why == "disk full" &&
                 error.failure().op == "barrier #0 on world";
      throw;
    }
  };
  EXPECT_EQ(what_of<std::runtime_error>([&] { run_forked(4, body); }), "disk full");
  EXPECT_EQ(told[0], 3);
}

TEST(RunProcessRanks, a_rank_that_exits_has_failed) {
  const auto body = [](Communicator& world) {
    if (world.rank() == 1) _exit(0);
    world.barrier().wait_host();
  };
  try {
    run_forked(2, body);
    FAIL() << "nothing was thrown";
  } catch (const CommError& error) {
    EXPECT_EQ(error.failure().rank, 1);
    EXPECT_TRUE(error.failure().why.starts_with("exited with code 0 before its function had ended, process "));
  }
}

TEST(RunProcessRanks, an_abort_is_not_forgotten_when_nobody_throws) {
  EXPECT_THROW(run_forked(2, [](Communicator& world) { world.abort("enough"); }), CommError);
}

TEST(RunProcessRanks, a_rank_that_does_not_notice_a_failure_is_killed_after_the_grace) {
  const double begin = now_seconds();
  const auto body = [](Communicator& world) {
    if (world.rank() == 0) throw RunError("the first");
    for (;;) pause();
  };
  EXPECT_EQ(what_of<RunError>([&] { run_forked(2, body, {.grace_seconds = 0.2}); }), "the first");
  EXPECT_GE(now_seconds() - begin, 0.2);
  expect_no_children();
}

TEST(RunProcessRanks, refuses_to_fork_where_other_threads_run_and_too_many_ranks_with_it) {
  std::latch seen(1);
  std::jthread other([&] { seen.wait(); });
  pthread_setname_np(other.native_handle(), "somebody");
  const std::string said = what_of<ConfigError>([] { run_process_ranks(65, [](Communicator&) {}); });
  EXPECT_NE(said.find("process ranks = 65: must be at most 64"), std::string::npos) << said;
  EXPECT_NE(said.find("must be forked before any other thread starts, and this process runs 2"), std::string::npos)
      << said;
  EXPECT_NE(said.find("somebody"), std::string::npos) << said;
  seen.count_down();
}

TEST(RunProcessRanks, ranks_die_with_their_parent) {
  SharedArray<int> ranks(2), ready;
  const pid_t caller = fork();
  if (caller == 0) {
    alarm(kTooLongSeconds);
    run_process_ranks(2, [&](Communicator& world) {
      ranks[world.rank()] = getpid();
      ++ready[0];
      for (;;) pause();
    });
    _exit(0);
  }
  while (ready[0] < 2) std::this_thread::yield();
  kill(caller, SIGKILL);
  waitpid(caller, nullptr, 0);
  const double begin = now_seconds();
  const auto gone = [&](int rank) {  // or dead, if nobody buries orphans here
    std::string line;
    std::ifstream stat(cat("/proc/", ranks[rank], "/stat"));
    return !std::getline(stat, line) || line.find(") Z ") != std::string::npos;
  };
  while (!(gone(0) && gone(1)) && now_seconds() - begin < 30) std::this_thread::yield();
  EXPECT_TRUE(gone(0) && gone(1));
}

}  // namespace
}  // namespace braid::launch::tests::process_ranks_test
