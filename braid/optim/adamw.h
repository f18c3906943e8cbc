// AdamW over a flat shard in one fused pass: clip, moments, decoupled decay, update and rounding of the masters read
// and write each element once. Source: Loshchilov & Hutter, "Decoupled Weight Decay Regularization" (2019),
// algorithm 2.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "braid/optim/adamw_update.h"
#include "braid/param/param_store.h"
#include "braid/spec/optimizer_spec.h"

namespace braid {

// What one step of the optimizer takes from outside.
struct OptimizerStep {
  double lr = 0;
  double grad_scale = 1;  // multiplies every gradient (norm clipping)
};

class AdamW {
 public:
  // State for what this rank owns of `store`, which must outlive this.
  AdamW(const OptimizerSpec& spec, ParamStore& store);

  // theta -= lr * (m_hat / (sqrt(v_hat) + eps) + decay * theta), with no decay on WeightDecay::No. Bitwise the same for
  // every number of threads; on a device the same every time, enqueued and not waited for. Padding stays zero. Backward
  // over weights saved before it fails (their version moves).
  void step(const OptimizerStep& step);

  int64_t num_steps() const { return num_steps_; }
  void set_num_steps(int64_t steps) { num_steps_ = steps; }  // after loading the moments
  // 1-D, of store.num_owned() elements and the masters' type: those of an OwnedRange begin at its place. Zeros at
  // first, which take memory from the first step or question on: none where servers make all steps.
  const at::Tensor& first_moment() const { return hold_moments(), first_moment_; }
  const at::Tensor& second_moment() const { return hold_moments(), second_moment_; }
  bool holds_moments() const { return first_moment_.defined(); }
  // Their memory goes; they are zeros again.
  void release_moments() { first_moment_ = second_moment_ = at::Tensor(); }

 private:
  struct Segment {
    int64_t begin, end;  // elements of the flat buffers
    double decay;
  };
  void hold_moments() const;
  template <class T>
  AdamWFactors<T> factors(const OptimizerStep& step) const;  // with keep = 1
  template <class T, class Data>
  void update(const OwnedRange& range, const OptimizerStep& step);
  template <class T>
  void update_on_device(const OptimizerStep& step);
  void update_on_host(const OwnedRange& range, const OptimizerStep& step);

  OptimizerSpec spec_;
  ParamStore& store_;
  std::vector<Segment> segments_;
  mutable at::Tensor first_moment_, second_moment_;  // undefined: zeros
  at::Tensor decays_;                                // on devices: which blocks decay
  int64_t num_steps_ = 0;
};

}  // namespace braid
