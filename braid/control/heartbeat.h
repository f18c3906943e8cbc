// Schedules the heartbeats of a node and measures for how long other nodes have been silent.
#pragma once

#include <algorithm>
#include <cmath>

#include "braid/base/clock.h"

namespace braid::control {

// Returns a timeout for poll(2): the time until `at` (now_seconds()), at most one minute.
inline int milliseconds_until(double at) {
  return static_cast<int>(std::ceil(std::clamp(at - now_seconds(), 0.0, 60.0) * 1000));
}

// The heartbeat schedule of this node, and the number of seconds for which the node has listened. Between two calls of
// listen() at most a third of `lost_seconds` counts. So other nodes are not blamed for time in which this process was
// stopped, its machine was suspended, or its owner was busy.
class Heartbeat {
 public:
  // The time between two heartbeats, as a fraction of `lost_seconds`.
  static constexpr double kInterval = 1.0 / 6;

  // A node that is silent for `lost_seconds` has failed.
  explicit Heartbeat(double lost_seconds) : lost_seconds_(lost_seconds), last_(now_seconds()), next_(last_) {}

  void listen() {
    const double now = now_seconds();
    listened_ += std::min(now - last_, lost_seconds_ / 3);
    last_ = now;
  }
  double listened() const { return listened_; }
  double lost_seconds() const { return lost_seconds_; }

  // Returns the time (now_seconds()) at which the next heartbeat is due.
  double due() const { return next_; }
  // Returns true once per heartbeat, when it is due.
  bool take_due() {
    const double now = now_seconds();
    if (now < next_) return false;
    next_ = now + kInterval * lost_seconds_;
    return true;
  }

 private:
  const double lost_seconds_;
  double last_, next_, listened_ = 0;
};

// The liveness of another node. `last_received` is the value of Heartbeat::listened() when its last bytes arrived.
struct PeerLiveness {
  double last_received = 0;

  bool lost(const Heartbeat& beat) const { return beat.listened() - last_received > beat.lost_seconds(); }
};

}  // namespace braid::control
