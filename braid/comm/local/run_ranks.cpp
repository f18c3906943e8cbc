// Starts ranks as threads, passes each its world, and throws the first failure.
#include "braid/comm/local/run_ranks.h"

#include <pthread.h>

#include <exception>
#include <mutex>
#include <thread>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/thread_communicator.h"

namespace braid {
namespace {

constexpr int kSpinTurns = 1000;  // about 20 us, the cost of a sleep and a wakeup

class LocalWorld {
 public:
  LocalWorld(int num_ranks, const std::function<void(Communicator&)>& body, const ThreadRankOptions& options)
      : body_(body), exceptions_(num_ranks) {
    int threads = num_ranks * (options.make_queue ? 2 : 1);
    bool room_to_spin = threads <= static_cast<int>(std::thread::hardware_concurrency());
    world_state_ = std::make_shared<comm::local::WorldState>(
        num_ranks, comm::local::WorldState::Options{options.deadline_seconds, room_to_spin ? kSpinTurns : 0});
    std::vector<int> world_ranks;
    for (int rank = 0; rank < num_ranks; ++rank) {
      world_ranks.push_back(rank);
      queues_.push_back(options.make_queue ? options.make_queue(rank) : std::make_unique<HostQueue>());
    }
    group_ = std::make_shared<comm::local::Group>(
        std::make_shared<comm::local::Membership>("world", std::move(world_ranks), world_state_));
  }

  void run() {
    int num_ranks = static_cast<int>(queues_.size());
    if (num_ranks == 1) {
      run_rank(0);
    } else {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < num_ranks; ++rank) guarded(rank, [&] { start(rank, threads); });
    }
    rethrow();
  }

 private:
  // A rank whose thread cannot be started fails, so that the ranks that are already started do not wait for it.
  void start(int rank, std::vector<std::jthread>& threads) {
    threads.emplace_back([this, rank] {
      pthread_setname_np(pthread_self(), cat("rank ", rank).c_str());
      run_rank(rank);
    });
  }

  void run_rank(int rank) {
    comm::local::ThreadCommunicator world(group_, rank, *queues_[rank]);
    world_state_->begin(rank);
    guarded(rank, [&] { body_(world); });
    world_state_->leave(rank);
    guarded(rank, [&] { queues_[rank]->drain(); });
    world_state_->end(rank);
  }

  template <class Body>
  void guarded(int rank, const Body& body) {
    try {
      body();
    } catch (const std::exception& error) {
      record(rank, error.what());
    } catch (...) {
      record(rank, "threw something that is no std::exception");
    }
  }

  // Called while the exception is being handled.
  void record(int rank, const char* why) {
    {
      std::lock_guard lock(mutex_);
      if (!exceptions_[rank]) exceptions_[rank] = std::current_exception();
      if (!first_) first_ = std::current_exception();
    }
    world_state_->fail({rank, rank, why});
  }

  // Throws the error of the rank that noticed the first failure; a rank woken by it may have thrown earlier.
  void rethrow() const {
    std::optional<comm::Failure> failure = world_state_->failure();
    if (!failure) return;
    if (exceptions_[failure->reporter]) std::rethrow_exception(exceptions_[failure->reporter]);
    if (first_) std::rethrow_exception(first_);
    world_state_->raise("run_ranks", 0);
  }

  const std::function<void(Communicator&)>& body_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::shared_ptr<comm::local::WorldState> world_state_;
  std::shared_ptr<comm::local::Group> group_;
  std::mutex mutex_;
  std::vector<std::exception_ptr> exceptions_;
  std::exception_ptr first_;
};

}  // namespace

void run_ranks(int num_ranks, const std::function<void(Communicator& world)>& body, const ThreadRankOptions& options) {
  check(num_ranks > 0, "a world has at least one rank");
  LocalWorld(num_ranks, body, options).run();
}

}  // namespace braid
