// Ranks over Gloo as threads of the test, each with an engine of its own on loopback.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/gloo/make_gloo_world.h"

namespace braid::comm::tests {

// Known to all ranks at once.
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

struct GlooRanks {
  double deadline_seconds = 100;
  ReductionOrder sums = ReductionOrder::Tree;
  std::function<std::unique_ptr<Queue>(int rank)> make_queue = nullptr;
};

// Throws what the rank that failed first has thrown.
inline void run_gloo_ranks(int num_ranks, const std::function<void(Communicator&)>& body,
                           const GlooRanks& options = {}) {
  control::LocalStore store;
  OneFailureState failures;
  std::vector<std::exception_ptr> errors(num_ranks);
  const auto live = [&](int rank) {
    try {
      const auto queue = options.make_queue ? options.make_queue(rank) : std::make_unique<HostQueue>();
      const auto world = make_gloo_world({.rank = rank,
                                          .size = num_ranks,
                                          .store = &store,
                                          .failures = &failures,
                                          .prefix = "test/",
                                          .deadline_seconds = options.deadline_seconds,
                                          .sums = options.sums},
                                         *queue);
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
    throw CommError({"ranks over Gloo", failure->rank, 0, failure->why});
  }
}

}  // namespace braid::comm::tests
