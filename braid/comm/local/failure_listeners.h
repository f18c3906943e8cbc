// Callbacks for a world's first failure. Thread-safe.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <optional>

#include "braid/comm/failure_state.h"

namespace braid::comm::local {

class FailureListeners {
 public:
  using Told = std::function<void(const Failure&)>;
  using Place = std::list<Told>::iterator;

  // Registers `told`, which tell() calls; where tell() has been called already, add() calls it at once.
  Place add(Told told);
  // On return the listener is not being called and never will be.
  void remove(Place place);
  // Calls every listener. At most once.
  void tell(const Failure& failure);

 private:
  std::mutex mutex_;  // held while they are told
  std::optional<Failure> failure_;
  std::list<Told> told_;
};

}  // namespace braid::comm::local
