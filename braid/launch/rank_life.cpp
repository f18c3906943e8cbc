// The checks before a fork, and the end of a rank's process.
#include "braid/launch/rank_life.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/shm/shared_world.h"
#include "braid/launch/rank_outcome.h"

namespace braid::launch {
namespace {

std::vector<std::string> thread_names() {
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    names.push_back(name);
  }
  return names;
}

}  // namespace

std::string run_rank(comm::FailureState& failures, int rank, int num_ranks_here, const MakeWorld& make_world,
                     const Launcher::Body& body, const LaunchOptions& options) {
  std::string thrown, value;
  const auto guarded = [&](const auto& step) {
    try {
      step();
    } catch (...) {
      failures.fail({rank, rank, RankOutcome::text_of_thrown()});
      if (thrown.empty()) thrown = RankOutcome::thrown();
    }
  };
  HostQueue queue;
  std::unique_ptr<Communicator> world;
  guarded([&] {
    prctl(PR_SET_NAME, cat("rank ", rank).c_str());
    take_threads(num_ranks_here, options);
    world = make_world(queue);
    value = body(*world);
  });
  guarded([&] { world.reset(); });
  return thrown.empty() ? RankOutcome::returned(std::move(value)) : thrown;
}

void leave_rank(int line, const std::string& last) noexcept {
  flush_all();
  write_all(line, last);
  _exit(0);
}

void write_all(int line, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(line, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) done += static_cast<size_t>(count);
  }
}

void flush_all() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

std::vector<int> relayed(SignalsTo to) {
  if (to == SignalsTo::Caller) return {SIGTSTP};
  return {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
}

void refuse_what_cannot_fork(int num_ranks) {
  check(num_ranks > 0, "a world has at least one rank");
  std::vector<Problem> problems;
  static_assert(kMaxProcessRanks == comm::shm::SharedWorld::kMaxRanks);
  if (num_ranks > kMaxProcessRanks) {
    problems.push_back(
        {"process ranks", cat(num_ranks), cat("must be at most ", kMaxProcessRanks), cat(kMaxProcessRanks)});
  }
  if (const auto names = thread_names(); names.size() > 1) {
    problems.push_back({.key = "process ranks",
                        .value = "",
                        .rule = cat("must be forked before any other thread starts, and this process runs ",
                                    names.size(), " (", joined(names), ")")});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace braid::launch
