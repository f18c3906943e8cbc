// When a node says that it lives, and for how long it has not heard others.
#pragma once

#include <algorithm>
#include <cmath>

#include "braid/base/clock.h"

namespace braid::control {

// For poll(2): until the clock shows `at`, but a minute at most.
inline int milliseconds_until(double at) {
  return static_cast<int>(std::ceil(std::clamp(at - now_seconds(), 0.0, 60.0) * 1000));
}

// Counts the seconds in which this node listened. In those that it slept through (its process was stopped, its machine
// held still, its owner busy) others may have spoken as they should or been held still with it.
class Heartbeat {
 public:
  // The time between two heartbeats, as a fraction of the seconds after which a silent node counts as failed.
  static constexpr double kBeat = 1.0 / 6;

  // A node that is silent for `lost_seconds` has failed.
  explicit Heartbeat(double lost_seconds) : lost_seconds_(lost_seconds), last_(now_seconds()), next_(last_) {}

  void listen() {
    const double now = now_seconds();
    listened_ += std::min(now - last_, lost_seconds_ / 3);
    last_ = now;
  }
  double listened() const { return listened_; }
  double lost_seconds() const { return lost_seconds_; }

  // The seconds of the clock at which to beat.
  double due() const { return next_; }
  // Returns true once per heartbeat, when it is due.
  bool take_due() {
    const double now = now_seconds();
    if (now < next_) return false;
    next_ = now + kBeat * lost_seconds_;
    return true;
  }

 private:
  const double lost_seconds_;
  double last_, next_, listened_ = 0;
};

// The liveness of another node, in seconds that this node has listened.
struct PeerLiveness {
  double heard_at = 0;

  bool lost(const Heartbeat& beat) const { return beat.listened() - heard_at > beat.lost_seconds(); }
};

}  // namespace braid::control
