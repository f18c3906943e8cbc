// Dropout for user modules on ranks that are threads. The mask is a function of (seed, step, microbatch, place in the
// model), so it depends neither on the timing of ranks nor on where the model is cut.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "braid/module/microbatch_listener.h"

namespace braid {

class KeyedDropoutImpl : public torch::nn::Cloneable<KeyedDropoutImpl>, public modules::MicrobatchListener {
 public:
  explicit KeyedDropoutImpl(double probability, uint64_t seed = 0);
  void reset() override {}
  // In training mode, sets each value to 0 with the given probability and scales the others by 1 / (1 - probability).
  // Each call in a microbatch uses another mask. In evaluation mode, returns `x`. Throws ConfigError in training mode
  // if begin_microbatch() was never called.
  at::Tensor forward(at::Tensor x);
  // ModulePipeline and DataParallel call this. Without them, call it before each microbatch, and again before a
  // microbatch is recomputed (recomputed layers do that themselves). Modules with equal seeds use different masks,
  // because their places differ.
  void begin_microbatch(const modules::MicrobatchContext& context) override;
  void end_step(Communicator&) override {}
  std::function<void()> capture_state() override;

 private:
  double probability_;
  uint64_t seed_;
  std::optional<uint64_t> key_;  // key of the microbatch
  uint64_t uses_ = 0;            // number of calls in the microbatch
};
TORCH_MODULE(KeyedDropout);

}  // namespace braid
