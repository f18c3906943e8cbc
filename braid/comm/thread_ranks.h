// Operations that only thread ranks have: sharing an object, and callbacks for the world's failure.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "braid/comm/failure_state.h"

namespace braid::comm {

class ThreadRanks {
 public:
  virtual ~ThreadRanks() = default;

  // Returns rank `root`'s object, owned by all ranks of the group. The other ranks' `object` is ignored. Collective,
  // blocks.
  virtual std::shared_ptr<void> share(std::shared_ptr<void> object, int root) = 0;

  // Calls `listener` with the world's first failure, on the thread that causes it, or at once if the world has failed
  // already. Destroying the result ends the registration, and waits for a call in progress. REQUIRES: `listener`
  // returns soon, throws nothing, and neither adds nor removes registrations.
  virtual std::shared_ptr<void> on_failure(std::function<void(const Failure&)> listener) = 0;
};

// share() for an object of type T. REQUIRES: all ranks use the same T.
template <class T>
std::shared_ptr<T> shared(ThreadRanks& ranks, std::shared_ptr<T> object, int root) {
  return std::static_pointer_cast<T>(ranks.share(std::move(object), root));
}

}  // namespace braid::comm
