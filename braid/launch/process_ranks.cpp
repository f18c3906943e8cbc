// Forks the ranks, and throws the error of the rank that failed first.
#include "braid/launch/process_ranks.h"

#include <csignal>
#include <limits>

#include "braid/base/clock.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/comm/shm/shm_transport.h"
#include "braid/comm/transport/process_communicator.h"
#include "braid/launch/rank_life.h"
#include "braid/launch/rank_outcome.h"
#include "braid/launch/supervisor.h"

namespace braid {
namespace {

constexpr int kSpinTurns = 1000;  // about 20 us, the cost of a sleep and a wakeup

// The delegate if all ranks are on this host. It detects hung ranks, and lets ranks go that may be lost.
class OneHost final : public launch::SupervisorDelegate {
 public:
  OneHost(comm::shm::SharedWorld& world, double progress_seconds)
      : world_(world), hangs_(world.size(), progress_seconds) {}

  int watch(std::vector<pollfd>&) const override { return std::numeric_limits<int>::max(); }
  void advance(launch::Supervisor&) override {}
  bool has_outcome(launch::Supervisor& supervisor, int rank) override {
    return launch::RankOutcome::complete(supervisor.message(rank));
  }
  bool lets_go(launch::Supervisor&, int rank) override {
    if (world_.failed() || !world_.board().activity(rank).allows_loss()) return false;
    world_.lose(rank);
    return true;
  }
  bool has_work() const override { return false; }
  void leave_to_child() override {}

  // A hung rank does not end by itself.
  void look(launch::Supervisor& supervisor, const std::vector<launch::RankSample>& signs) override {
    if (told_) return;
    const auto hung = hangs_.look(now_seconds(), signs);
    if (!hung) return;
    std::vector<std::string> states;
    for (int rank = 0; rank < supervisor.num_ranks(); ++rank) states.push_back(supervisor.state(rank));
    supervisor.fail(*hung, "makes no progress (" + joined(states, "; ") + ")");
    supervisor.kill(*hung);
    told_ = true;
  }

 private:
  comm::shm::SharedWorld& world_;
  launch::HangDetector hangs_;
  bool told_ = false;
};

class ProcessWorld {
 public:
  ProcessWorld(int num_ranks, const Launcher::Body& body, const LaunchOptions& options)
      : body_(body), options_(options), world_(num_ranks, num_ranks <= num_cores() ? kSpinTurns : 0) {}

  std::vector<std::string> run() {
    const double begin = now_seconds();
    launch::flush_all();
    fork_and_watch();
    if (const std::optional<comm::Failure> failure = world_.failure()) {
      launch::throw_error_of({"process ranks", *failure, now_seconds() - begin, left_behind_}, messages_);
    }
    std::vector<std::string> values;
    for (int rank = 0; rank < world_.size(); ++rank) {
      const std::string& message = messages_[static_cast<size_t>(rank)];
      values.push_back(world_.lost(rank) ? "" : launch::RankOutcome::value(message));
    }
    return values;
  }

 private:
  // Raises signals that arrived meanwhile at its end, before the caller throws an error.
  void fork_and_watch() {
    launch::SignalRelay signals(launch::relayed(options_.signals));
    OneHost host(world_, options_.progress_seconds);
    launch::Supervisor supervisor({world_, world_.board(), signals, host}, {options_.grace_seconds});
    for (int rank = 0; rank < world_.size(); ++rank) {
      // An exception that left this function would unwind into the parent's code.
      supervisor.start(rank, [&](int line) noexcept {
        std::signal(SIGTTOU, SIG_IGN);  // a terminal with `stty tostop` stops background processes that write to it
        launch::leave_rank(line, launch::run_rank(world_, rank, world_.size(), world_of(rank), body_, options_));
      });
    }
    supervisor.run();
    for (int rank = 0; rank < world_.size(); ++rank) messages_.push_back(supervisor.message(rank));
    left_behind_ = supervisor.left_behind();
  }

  launch::MakeWorld world_of(int rank) {
    return [this, rank](Queue& queue) {
      return comm::transport::ProcessCommunicator::of_world(std::make_unique<comm::shm::ShmTransport>(world_, rank),
                                                            {.rank = rank,
                                                             .size = world_.size(),
                                                             .failures = &world_,
                                                             .deadline_seconds = options_.deadline_seconds,
                                                             .activity = &world_.board().activity(rank)},
                                                            queue);
    };
  }

  const Launcher::Body& body_;
  const LaunchOptions& options_;
  comm::shm::SharedWorld world_;
  std::vector<std::string> messages_;  // outcomes by rank
  std::string left_behind_;            // ranks that did not end, in words
};

}  // namespace

std::vector<std::string> ProcessLauncher::run(int num_ranks, const Body& body, const LaunchOptions& options) const {
  launch::refuse_what_cannot_fork(num_ranks);
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
