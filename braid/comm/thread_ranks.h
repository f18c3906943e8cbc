// Operations of thread ranks beside exchanging tensors: sharing an object, and callbacks for the world's failure.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "braid/comm/failure_state.h"

namespace braid::comm {

class ThreadRanks {
 public:
  virtual ~ThreadRanks() = default;

  // Rank `root`'s object, owned by all ranks of the group; what the others pass is ignored. Collective, blocks.
  virtual std::shared_ptr<void> share(std::shared_ptr<void> object, int root) = 0;

  // Calls `told` with the world's first failure: on the thread that brings it about, or at once where it has failed
  // already. Destroying the result ends the registration, after waiting for a call under way. `told` returns soon,
  // throws nothing, and neither registers nor releases others.
  virtual std::shared_ptr<void> on_failure(std::function<void(const Failure&)> told) = 0;
};

// share() with a type, the same on all ranks.
template <class T>
std::shared_ptr<T> shared(ThreadRanks& ranks, std::shared_ptr<T> object, int root) {
  return std::static_pointer_cast<T>(ranks.share(std::move(object), root));
}

}  // namespace braid::comm
