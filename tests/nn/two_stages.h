// A small model cut into two stages on one rank, each keeping what memory.recompute says. Thread ranks may share it
// along the tensor axis.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/local/run_ranks.h"
#include "braid/layout/parameters.h"
#include "braid/nn/model.h"
#include "braid/nn/segments.h"
#include "tests/nn/formula_values.h"
#include "tests/nn/placed.h"

namespace braid {

// W of a microbatch: inside its backward, after it, or when all backwards are done.
enum class Weights { AtOnce, AfterBackward, AtTheEnd };

struct StagesRun {
  ModelSpec model;
  std::string recompute = "none";  // for both stages, or of each
  at::ScalarType dtype = at::kDouble;
  Reduction reduction = Reduction::Fast;
  int ranks = 1;
  Weights weights = Weights::AfterBackward;
  enum class Recomputes { InBackward, Ahead } recomputes = Recomputes::InBackward;
  enum class Documents { One, Several } documents = Documents::One;
};

constexpr int kMicrobatches = 2;
constexpr int64_t kSequences = 2;
constexpr double kSeed = 0.5;  // of the loss

// Five blocks with dropout: the stages hold [embedding 1 2] and [3 4 5 head].
inline ModelSpec five_blocks(ModelFamily family) {
  ModelSpec spec;
  spec.family = family;
  spec.layers = 5;
  spec.heads = 6;
  spec.width = family == ModelFamily::Llama ? 48 : 24;
  spec.kv_heads = family == ModelFamily::Llama ? 2 : 0;
  spec.context = 8;
  spec.vocab = 19;
  spec.vocab_multiple = 2;
  spec.dropout = 0.3;
  return spec;
}

inline nn::Microbatch stages_microbatch(const StagesRun& run, int micro) {
  const std::string suffix = std::to_string(micro);
  nn::Microbatch m;
  m.micro = micro;
  m.dropout_key = 100 + static_cast<uint64_t>(micro);
  m.loss_gradient = kSeed;
  m.tokens_bt = formula_integers("tokens" + suffix, {kSequences, run.model.context}, run.model.vocab);
  m.targets_bt = formula_integers("targets" + suffix, {kSequences, run.model.context}, run.model.vocab);
  if (run.documents == StagesRun::Documents::Several) {
    m.documents_bt = at::tensor({0, 0, 0, 1, 1, 2, 2, 2, 0, 1, 1, 1, 1, 1, 1, 1}, at::kLong).view({2, 8});
  }
  return m;
}

class TwoStages {
 public:
  TwoStages(const StagesRun& run, Communicator& tensor)
      : run_(run),
        store_(layout::model_params(run.model, tensor.rank(), tensor.size()), run.reduction, run.dtype, 1),
        sink_(run.reduction == Reduction::Fast ? param::accumulating_sink(store_) : param::tree_sink(store_)) {
    fill_parameters();
    const MemorySpec memory{run.recompute};
    const int all = run.model.layers + 2;
    build(0, {0, 3}, {1, 2, 0}, {tensor, memory});
    build(1, {3, all}, {0, all - 4, 1}, {tensor, memory});
  }

  // The losses, and the gradient of each use of each parameter.
  std::map<std::string, at::Tensor> step() {
    std::map<std::string, at::Tensor> results;
    sink_->begin_step(kMicrobatches);
    std::vector<at::Tensor> losses;
    for (int micro = 0; micro < kMicrobatches; ++micro) losses.push_back(forward(micro));
    for (int micro = 0; micro < kMicrobatches; ++micro) {
      const at::Tensor& loss = losses[static_cast<size_t>(micro)];
      results["loss" + std::to_string(micro)] = loss.detach();
      backward(micro, at::full_like(loss, kSeed));
    }
    for (int micro = 0; micro < kMicrobatches; ++micro) run_weights(micro);
    for (const param::Parameter& p : store_.params()) {
      for (const param::UseGrad& use : p.use_grads) results[p.name + "." + std::to_string(use.use)] = use.slice.clone();
    }
    return results;
  }

 private:
  struct Stage {
    std::unique_ptr<param::WeightGradQueue> queue;
    nn::Segments::Blocks blocks;
    std::unique_ptr<nn::Segments> segments;
    nn::Passage passages[kMicrobatches];
  };
  struct Range {
    int begin, end;
  };
  struct Shared {
    Communicator& tensor;
    const MemorySpec& memory;
  };

  // Formula values; slots start as NaN, so what is not written shows.
  void fill_parameters() {
    const at::NoGradGuard no_grad;
    for (param::Parameter& p : store_.params()) {
      p.master.copy_(place(formula_parameter(p.name, p.placement.global_shape), p.placement));
      for (param::UseGrad& use : p.use_grads) use.slice.fill_(std::numeric_limits<double>::quiet_NaN());
    }
    store_.round_masters();
  }

  void build(int index, Range range, const nn::StageBlocks& counts, const Shared& shared) {
    Stage& stage = stages_[index];
    const spec::Recompute policy = spec::stage_recompute(shared.memory, index);
    stage.queue = std::make_unique<param::WeightGradQueue>(*sink_);
    const nn::RankContext rank{shared.tensor, *stage.queue, nn::kept_by_layers(policy)};
    for (int i = range.begin; i < range.end; ++i)
      stage.blocks.push_back(nn::model_block(run_.model, {i}, store_, rank));
    stage.segments = std::make_unique<nn::Segments>(stage.blocks, nn::plan_segments(policy, counts), *stage.queue);
  }

  at::Tensor forward(int micro) {
    const nn::Microbatch m = stages_microbatch(run_, micro);
    for (Stage& stage : stages_) stage.passages[micro] = nn::Passage(m);
    const at::Tensor x = stages_[0].segments->forward({}, stages_[0].passages[micro]);
    return stages_[1].segments->forward(x.detach(), stages_[1].passages[micro]);
  }

  void backward(int micro, at::Tensor gradient) {
    const nn::WeightPass pass = run_.weights == Weights::AtOnce ? nn::WeightPass::AtOnce : nn::WeightPass::Later;
    for (const int index : {1, 0}) {
      Stage& stage = stages_[index];
      nn::Passage& passage = stage.passages[micro];
      if (run_.recomputes == StagesRun::Recomputes::Ahead) stage.segments->recompute(passage);
      gradient = stage.segments->backward(std::move(passage), gradient, pass);
      if (run_.weights == Weights::AfterBackward) stage.queue->run(micro);
    }
  }

  void run_weights(int micro) {
    for (const int stage : {1, 0}) stages_[stage].queue->run(micro);
  }

  StagesRun run_;
  param::ParamStore store_;
  std::unique_ptr<param::GradSink> sink_;
  Stage stages_[2];
};

}  // namespace braid
