// Who wants to hear of a world's first failure. It does not decide what a failure is. Thread-safe.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <optional>

#include "braid/comm/failure.h"

namespace braid {

class FailureListeners {
 public:
  using Told = std::function<void(const Failure&)>;
  using Place = std::list<Told>::iterator;

  // Called by tell(), or at once when that has been.
  Place add(Told told);
  // It is not being called, and will not be any more.
  void remove(Place place);
  // Once.
  void tell(const Failure& failure);

 private:
  std::mutex mutex_;  // held while they are told
  std::optional<Failure> failure_;
  std::list<Told> told_;
};

}  // namespace braid
