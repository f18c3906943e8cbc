// The Work of process ranks, for any transport: operations in flight that the rank itself waits for. Also computes the
// members of a group made by split().
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/comm/communicator.h"

namespace braid::comm {

// One rank's part of an operation.
class RankOperation {
 public:
  virtual ~RankOperation() = default;

  virtual std::string label() const = 0;  // name in messages: "all_reduce #17 on tensor"
  bool done() const { return done_.load(); }

 protected:
  void finish() { done_.store(true); }

 private:
  std::atomic<bool> done_{false};
};

// The Work of one rank. `Rank` has wait(operation, issued_seconds), which throws if the world has failed, and
// poll(operation), which returns true then.
template <class Rank, class Operation>
class WaitedWork final : public Work::State, public std::enable_shared_from_this<WaitedWork<Rank, Operation>> {
 public:
  using Parts = std::vector<std::shared_ptr<const Operation>>;

  WaitedWork(std::shared_ptr<Rank> rank, Parts parts) : rank_(std::move(rank)), parts_(std::move(parts)) {}

  void order_before(Queue& queue) override {
    if (dynamic_cast<HostQueue*>(&queue)) return wait_host();
    // If the wait fails, the failure has poisoned the world, and the rank gets it at its next wait_host().
    queue.enqueue([self = this->shared_from_this()] {
      try {
        self->wait_host();
      } catch (const CommError&) {
      }
    });
  }

  void wait_host() override {
    for (const auto& part : parts_) rank_->wait(*part, issued_);
  }

  bool done() const override {
    return std::ranges::all_of(parts_, [this](const auto& part) { return rank_->poll(*part); });
  }

 private:
  const std::shared_ptr<Rank> rank_;
  const Parts parts_;
  const double issued_ = now_seconds();
};

// Returns the ranks of the old group that have rank `me`'s colour, in the order of the new group. A request has a
// colour and a key.
template <class SplitRequest>
std::vector<int> members_of_colour(const std::vector<SplitRequest>& requests, int me) {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(requests.size()); ++rank) {
    if (requests[rank].colour == requests[me].colour) ranks.push_back(rank);
  }
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return requests[rank].key; });
  return ranks;
}

}  // namespace braid::comm
