// One lock over list and calls: who is taken off the list is not in a call.
#include "braid/comm/local/failure_listeners.h"

#include <utility>

namespace braid::comm::local {

FailureListeners::Place FailureListeners::add(Told told) {
  const std::lock_guard lock(mutex_);
  if (failure_) told(*failure_);
  return told_.insert(told_.end(), std::move(told));
}

void FailureListeners::remove(Place place) {
  const std::lock_guard lock(mutex_);
  told_.erase(place);
}

void FailureListeners::tell(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  for (const Told& told : told_) told(failure);
}

}  // namespace braid::comm::local
