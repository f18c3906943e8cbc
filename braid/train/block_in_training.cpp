// A model of one block.
#include "braid/train/block_in_training.h"

#include <c10/core/GradMode.h>

#include "braid/base/median.h"
#include "braid/plan/block_work.h"

namespace braid::train {
namespace {

constexpr nn::ModelPiece kBlock{1};

RunSpec one_block_of(RunSpec spec) {
  spec.model.layers = 1;
  if (spec.model.vocab == 0)
    spec.model.vocab = spec.model.vocab_multiple;  // of tokens, which a sample has and no block reads
  spec.memory = {};  // nothing is made again: what is timed are the passes that predictions add recompute to
  return spec;
}

// Drawing their values would take longer than all rounds, and of large values come infinities, which are slow.
param::ModelParams zero_params(const RunSpec& spec) {
  param::BlockSpec block = nn::params_of(kBlock, nn::model_params(spec.model, 0, 1));
  for (param::ParamSpec& param : block.params) param.init = {param::Init::Kind::Zeros};
  return {block};
}

}  // namespace

BlockInTraining::BlockInTraining(const RunSpec& spec, Communicator& self)
    : spec_(one_block_of(spec)),
      params_(zero_params(spec_)),
      sample_(spec_, params_, self),
      piece_(sample_.piece(kBlock)) {}

double BlockInTraining::round() {
  const c10::AutoGradMode with_grad(true);
  const PassTimes passes = piece_.run();
  seconds_.push_back(passes.forward + passes.input_grad + passes.weight_grad);
  return seconds_.back();
}

double BlockInTraining::seconds() const { return median(seconds_); }

double BlockInTraining::streamed_bytes() const {
  plan::RunLayout layout;
  layout.tokens = static_cast<double>(spec_.train.microbatch) * spec_.model.context;
  double bytes = 0;
  for (const plan::PartWork& half : {plan::attention_work(spec_, layout, plan::FormulaSet::Braid),
                                     plan::feed_work(spec_, layout, plan::FormulaSet::Braid)}) {
    bytes += half.forward.streamed_bytes + half.input_grad.streamed_bytes;
  }
  return bytes;
}

}  // namespace braid::train
