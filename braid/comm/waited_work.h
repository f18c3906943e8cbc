// The Work of process ranks, whatever they reach each other by: operations in flight that the rank itself waits for.
// And who is in a group that a split makes.
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

  virtual std::string label() const = 0;  // for messages: "all_reduce #17 on tensor"
  bool done() const { return done_.load(); }

 protected:
  void finish() { done_.store(true); }

 private:
  std::atomic<bool> done_{false};
};

// `Rank` has wait(operation, issued_seconds) and poll(operation), which throw or are true when the world has failed.
template <class Rank, class Operation>
class WaitedWork final : public Work::State, public std::enable_shared_from_this<WaitedWork<Rank, Operation>> {
 public:
  using Parts = std::vector<std::shared_ptr<const Operation>>;

  WaitedWork(std::shared_ptr<Rank> rank, Parts parts) : rank_(std::move(rank)), parts_(std::move(parts)) {}

  void order_before(Queue& queue) override {
    if (dynamic_cast<HostQueue*>(&queue)) return wait_host();
    // A failure has poisoned the world by then, so the rank meets it at its next wait_host().
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

// The ranks of the old group that have rank `me`'s colour, in the order of the new. A request has a colour and a key.
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
