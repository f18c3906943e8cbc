// The failure state of a world, as backends that reach beyond one memory read and set it.
#pragma once

#include <optional>
#include <string>

namespace braid::comm {

// The first failure of a world, as all its ranks learn it.
struct Failure {
  int rank;         // world rank at fault
  int reporter;     // world rank that noticed; its exception is the one to show
  std::string why;  // continues the sentence "rank 2: "
};

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
