// The time that a failure waits before it is reported, because somebody else may know its cause.
#pragma once

#include <cmath>

#include "braid/base/clock.h"

namespace braid::comm::transport {

class Grace {
 public:
  // A supervisor names a rank that died within this time of the loss of its connections.
  static constexpr double kOfConnection = 0.3;  // seconds
  // The connection that was closed is named first.
  static constexpr double kOfSums = 2 * kOfConnection;
  static constexpr double kNap = 0.01;  // seconds between two calls of lasts()

  explicit Grace(double seconds) : end_(now_seconds() + seconds), naps_(std::lround(seconds / kNap)) {}

  // Returns false after the time and as many calls as fit into it. Calls count because a loaded or stopped process does
  // little within a time.
  bool lasts() { return naps_-- > 0 || now_seconds() < end_; }

 private:
  const double end_;
  long naps_;
};

}  // namespace braid::comm::transport
