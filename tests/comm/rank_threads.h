// Process ranks as threads of the test.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/communicator.h"
#include "braid/comm/failure_state.h"

namespace braid::comm::tests {

// A failure state that all ranks of the test share.
class OneFailureState final : public FailureState {
 public:
  void fail(const Failure& failure) override {
    const std::scoped_lock hold(mutex_);
    if (!first_) first_ = failure;
  }
  std::optional<Failure> failure() const override {
    const std::scoped_lock hold(mutex_);
    return first_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Failure> first_;
};

using MakeWorld = std::function<std::unique_ptr<Communicator>(int rank, Queue& queue)>;

using MakeQueue = std::function<std::unique_ptr<Queue>(int rank)>;

// Throws the exception of the rank that failed first. `make_queue` may be null: HostQueue.
inline void run_ranks_on(int num_ranks, FailureState& failures, const MakeWorld& make_world,
                         const std::function<void(Communicator&)>& body, const MakeQueue& make_queue = nullptr) {
  std::vector<std::exception_ptr> errors(num_ranks);
  const auto live = [&](int rank) {
    try {
      const auto queue = make_queue ? make_queue(rank) : std::make_unique<HostQueue>();
      const auto world = make_world(rank, *queue);
      try {
        body(*world);
        queue->drain();
      } catch (const std::exception& error) {
        failures.fail({rank, rank, error.what()});
        throw;
      }
    } catch (...) {
      errors[rank] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < num_ranks; ++rank) threads.emplace_back(live, rank);
  }
  if (const auto failure = failures.failure()) {
    if (errors[failure->reporter]) std::rethrow_exception(errors[failure->reporter]);
    throw CommError({"ranks", failure->rank, 0, failure->why});
  }
}

}  // namespace braid::comm::tests
