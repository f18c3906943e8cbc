// When a node says that it lives, and for how long it has not heard others.
#pragma once

#include <algorithm>
#include <cmath>

#include "braid/base/clock.h"

namespace braid {

// For poll(2): until the clock shows `at`, but a minute at most.
inline int milliseconds_until(double at) {
  return static_cast<int>(std::ceil(std::clamp(at - now_seconds(), 0.0, 60.0) * 1000));
}

// Counts the seconds in which this node listened. In those that it slept through (its process was stopped, its machine
// held still, its owner busy) others may have spoken as they should or been held still with it.
class Heartbeat {
 public:
  // Of the seconds after which who is silent is lost: the time between two beats.
  static constexpr double kBeat = 1.0 / 6;

  // Who is not heard for `lost_seconds` is lost.
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
  // Whether it is time, once per beat.
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

// What is known of another node's life, in seconds that this one has listened.
struct PeerLife {
  double heard_at = 0;

  bool lost(const Heartbeat& beat) const { return beat.listened() - heard_at > beat.lost_seconds(); }
};

}  // namespace braid
