// Dropout for user modules on ranks that are threads. The mask is a function of (seed, step, microbatch, place in the
// model), so it does not depend on how ranks take turns, nor on where the model is cut.
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
  // While training, each value is 0 with the probability and otherwise scaled by 1 / (1 - probability). Used several
  // times in a microbatch, it draws another mask each time. In evaluation mode it draws nothing. Throws ConfigError
  // when it trains and was never told of a microbatch.
  at::Tensor forward(at::Tensor x);
  // ModulePipeline and DataParallel call it; without them, call it before each microbatch, and again before one is
  // computed again. Modules of equal seed draw apart by their place.
  void begin_microbatch(const modules::MicrobatchContext& context) override;
  void end_step(Communicator&) override {}

 private:
  double probability_;
  uint64_t seed_;
  std::optional<uint64_t> key_;  // of the microbatch
  uint64_t uses_ = 0;            // in it
};
TORCH_MODULE(KeyedDropout);

}  // namespace braid
