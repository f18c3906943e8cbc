// The destination of weight gradients. The sink, not an autograd hook, says when a parameter's gradient is complete;
// listeners of `on_ready` communicate it.
#pragma once

#include <functional>
#include <memory>

#include "braid/param/param_store.h"

namespace braid::param {

// The place of one contribution. `beta` is 0 (overwrite) or 1 (accumulate): target = beta * target + gradient.
struct GradSlot {
  at::Tensor target;  // local shape of the parameter
  double beta = 0;
};

// For each (parameter, use, micro) of a step, once: open, write, close. One thread.
class GradSink {
 public:
  virtual ~GradSink() = default;
  virtual GradSlot open(const Parameter& param, int use, int micro) = 0;
  virtual void close(const Parameter& param, int use, int micro) = 0;
  // Before a step of `num_microbatches` per rank.
  virtual void begin_step(int num_microbatches) = 0;

  // Called from close() when all local uses of `param` have closed all microbatches: its use_grads slices are final on
  // this rank. May be empty.
  std::function<void(const Parameter& param)> on_ready;
};

// fast: straight into main_grad; the first contribution of a step overwrites, later ones accumulate.
std::unique_ptr<GradSink> accumulating_sink(ParamStore& store);

// reproducible: a balanced binary tree over microbatches, whatever their order; keeps at most log2(m) + 1 buffers per
// use when microbatches arrive in order. m must be a power of two.
//
//   micro  0  1  2  3        (g0 + g1) + (g2 + g3)
std::unique_ptr<GradSink> tree_sink(ParamStore& store);

}  // namespace braid::param
