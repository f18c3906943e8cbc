// Forking, a rank's life in its process, and what is thrown in the end.
#include "braid/launch/process_ranks.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/comm/shm/shm_communicator.h"
#include "braid/launch/rank_outcome.h"
#include "braid/launch/supervisor.h"

namespace braid {
namespace {

constexpr int kSpinTurns = 1000;  // some 20 us: about what going to sleep and waking up costs

std::vector<std::string> thread_names() {
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    names.push_back(name);
  }
  return names;
}

void refuse_what_cannot_fork(int num_ranks) {
  check(num_ranks > 0, "a world has at least one rank");
  std::vector<Problem> problems;
  static_assert(kMaxProcessRanks == SharedWorld::kMaxRanks);
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

// The life of a rank, in its process.
class RankProcess {
 public:
  RankProcess(SharedWorld& world, int rank, const LaunchOptions& options)
      : world_(world), rank_(rank), options_(options) {}

  // How it ended.
  std::string run(const Launcher::Body& body) {
    std::unique_ptr<Queue> queue;
    guarded([&] {
      prctl(PR_SET_NAME, cat("rank ", rank_).c_str());
      take_threads(world_.size(), options_);
      queue = options_.make_queue ? options_.make_queue(rank_) : std::make_unique<HostQueue>();
    });
    if (!outcome_.empty()) return outcome_;
    const auto progress = std::make_shared<RankProgress>(world_, rank_);
    const auto communicator = ShmCommunicator::of_world(progress, *queue);
    std::string value;
    guarded([&] { value = body(*communicator); });
    guarded([&] { queue->drain(); });
    progress->finish();
    return outcome_.empty() ? RankOutcome::returned(std::move(value)) : outcome_;
  }

 private:
  template <class Step>
  void guarded(const Step& step) {
    try {
      step();
    } catch (...) {
      world_.fail({rank_, rank_, RankOutcome::text_of_thrown()});
      if (outcome_.empty()) outcome_ = RankOutcome::thrown();
    }
  }

  SharedWorld& world_;
  const int rank_;
  const LaunchOptions& options_;
  std::string outcome_;
};

void flush_all() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

void write_all(int line, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(line, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) done += static_cast<size_t>(count);
  }
}

std::vector<int> relayed(SignalsTo to) {
  if (to == SignalsTo::Caller) return {SIGTSTP};
  return {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
}

class ProcessWorld {
 public:
  ProcessWorld(int num_ranks, const Launcher::Body& body, const LaunchOptions& options)
      : body_(body),
        options_(options),
        world_(num_ranks, {options.deadline_seconds, num_ranks <= num_cores() ? kSpinTurns : 0}) {}

  std::vector<std::string> run() {
    const double begin = now_seconds();
    flush_all();
    fork_and_watch();
    rethrow(now_seconds() - begin);
    std::vector<std::string> values;
    for (const std::string& message : messages_) values.push_back(RankOutcome::value(message));
    return values;
  }

 private:
  // Signals that came meanwhile are raised at its end, before any error is thrown.
  void fork_and_watch() {
    SignalRelay signals(relayed(options_.signals));
    Supervisor supervisor(world_, signals, options_.grace_seconds);
    for (int rank = 0; rank < world_.size(); ++rank) {
      supervisor.start([&](int line) { live(rank, line); });
    }
    supervisor.run();
    for (int rank = 0; rank < world_.size(); ++rank) messages_.push_back(supervisor.message(rank));
  }

  // An exception that left this would go on in the parent's code.
  [[noreturn]] void live(int rank, int line) noexcept {
    std::signal(SIGTTOU, SIG_IGN);  // a terminal may be set to stop who writes to it from its background
    const std::string outcome = RankProcess(world_, rank, options_).run(body_);
    flush_all();
    write_all(line, outcome);
    _exit(0);
  }

  // What the rank that noticed the first failure threw; a rank woken by it may have thrown earlier.
  void rethrow(double elapsed_seconds) const {
    const std::optional<Failure> failure = world_.failure();
    if (!failure) return;
    if (failure->reporter >= 0) rethrow_of(failure->reporter);
    for (int rank = 0; rank < world_.size(); ++rank) rethrow_of(rank);
    world_.raise("process ranks", elapsed_seconds);
  }

  void rethrow_of(int rank) const {
    const std::string& message = messages_[rank];
    if (RankOutcome::complete(message)) RankOutcome::value(message);
  }

  const Launcher::Body& body_;
  const LaunchOptions& options_;
  SharedWorld world_;
  std::vector<std::string> messages_;  // by rank: how it ended
};

}  // namespace

std::vector<std::string> ProcessLauncher::run(int num_ranks, const Body& body, const LaunchOptions& options) const {
  refuse_what_cannot_fork(num_ranks);
  return ProcessWorld(num_ranks, body, options).run();
}

void run_process_ranks(int num_ranks, const std::function<void(Communicator& world)>& body,
                       const LaunchOptions& options) {
  const auto without_value = [&](Communicator& world) {
    body(world);
    return std::string();
  };
  ProcessLauncher().run(num_ranks, without_value, options);
}

}  // namespace braid
