// The failure state of a world, as backends that reach beyond one memory read and set it.
#pragma once

#include <optional>

#include "braid/comm/failure.h"

namespace braid::comm {

// Thread-safe.
class FailureState {
 public:
  virtual ~FailureState() = default;

  // The first call of all ranks wins.
  virtual void fail(const Failure& failure) = 0;
  // The first failure, as soon as it is known here; asked often.
  virtual std::optional<Failure> failure() const = 0;
};

}  // namespace braid::comm
