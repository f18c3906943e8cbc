// The destination of weight gradients. The sink, not an autograd hook, reports when a parameter's gradient is complete;
// the listener of `on_ready` communicates it.
#pragma once

#include <functional>
#include <memory>

#include "braid/param/param_store.h"

namespace braid::param {

// The memory for one contribution. `beta` is 0 (overwrite) or 1 (accumulate): target = beta * target + gradient.
struct GradSlot {
  at::Tensor target;  // local shape of the parameter
  double beta = 0;
};

// The interface of sinks. For each (parameter, use, micro) of a step, the caller calls open(), writes and calls
// close(), once. Used by one thread.
class GradSink {
 public:
  virtual ~GradSink() = default;
  virtual GradSlot open(const Parameter& param, int use, int micro) = 0;
  virtual void close(const Parameter& param, int use, int micro) = 0;
  // Called before a step of `num_microbatches` per rank.
  virtual void begin_step(int num_microbatches) = 0;

  // Called from close() when all local uses of `param` have closed all microbatches, so that its use_grads slices are
  // final on this rank. May be empty.
  std::function<void(const Parameter& param)> on_ready;
};

// Makes the sink of fast mode. It writes into main_grad: the first contribution of a step overwrites, later ones
// accumulate.
std::unique_ptr<GradSink> accumulating_sink(ParamStore& store);

// Makes the sink of reproducible mode. It adds microbatches in a balanced binary tree, in whatever order they arrive.
// If they arrive in order, it keeps at most log2(m) + 1 buffers per use. REQUIRES: m is a power of two.
//
//   micro  0  1  2  3        (g0 + g1) + (g2 + g3)
std::unique_ptr<GradSink> tree_sink(ParamStore& store);

}  // namespace braid::param
