// The failure state of a world, an interface for backends that span several processes.
#pragma once

#include <optional>
#include <string>

namespace braid::comm {

// The first failure of a world, equal on all its ranks.
struct Failure {
  int rank;         // world rank at fault
  int reporter;     // world rank that noticed the failure; its exception is the one to show
  std::string why;  // continues the sentence "rank 2: "
};

// The reason of a failure when an exception destroys a rank's part of the world.
inline constexpr const char* kEndsByException = "ends by an exception";

// The failure state of a world. Thread-safe.
class FailureState {
 public:
  virtual ~FailureState() = default;

  // Sets the failure. The first call of all ranks wins.
  virtual void fail(const Failure& failure) = 0;
  // Returns the first failure as soon as it is known on this rank. Called often.
  virtual std::optional<Failure> failure() const = 0;
};

}  // namespace braid::comm
