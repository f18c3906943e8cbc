// The loss scale, a factor that keeps float16 gradients out of underflow. It is halved when gradients overflow and
// doubled after a long run of finite steps.
//
// Source: Micikevicius et al., "Mixed Precision Training" (2018), section 3.2, with a dynamic factor.
#pragma once

#include <cstdint>

#include "braid/spec/train_spec.h"

namespace braid::optim {

enum class Gradients { Finite, Overflowed };

class LossScaler {
 public:
  static constexpr int kGrowthInterval = 2000;      // finite steps after which the scale doubles
  static constexpr double kSmallest = 1.0 / 65536;  // an overflow at this scale means that the run has diverged
  static constexpr double kLargest = kLargestLossScale;

  struct State {
    double scale = 1;
    int64_t num_finite = 0;  // finite steps since the scale last changed
  };

  // The scale starts at a power of two near `first_scale`, and stays a power of two, so that unscaling is exact.
  explicit LossScaler(double first_scale);

  double scale() const { return state_.scale; }
  // Called once per step. Throws RunError if gradients overflow at the smallest scale.
  void update(Gradients gradients);

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }  // after loading

 private:
  State state_;
};

}  // namespace braid::optim
