// A user module on two replicas of a pipeline of two ranks.
#pragma once

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <vector>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"
#include "tests/support/counted_collectives.h"

namespace braid::two_pipelines {

using torch::nn::Linear;

inline constexpr int kSteps = 4, kRows = 12;

// One layer is never used, one is frozen, and one is used where `takes_side`.
struct BranchesImpl : torch::nn::Module {
  BranchesImpl() {
    used = register_module("used", Linear(8, 8));
    side = register_module("side", Linear(8, 8));
    unused = register_module("unused", Linear(8, 8));
    frozen = register_module("frozen", Linear(8, 8));
    for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = frozen(used(x));
    return takes_side ? y + side(x) : y;
  }
  Linear used{nullptr}, side{nullptr}, unused{nullptr}, frozen{nullptr};
  bool takes_side = true;
};
TORCH_MODULE(Branches);

struct Model {
  Linear fc{5, 8}, head{8, 3};
  Branches branches;
  std::function<at::Tensor(at::Tensor)> between = [](at::Tensor x) { return x; };

  explicit Model(uint64_t seed) {
    torch::manual_seed(seed);
    for (torch::nn::Module* module : modules()) {
      module->to(at::kDouble);
      for (auto& parameter : module->parameters()) parameter.data().normal_(0, 0.4);
    }
  }
  std::vector<torch::nn::Module*> modules() { return {fc.get(), branches.get(), head.get()}; }
  // The first four in the first half, where it is cut in two.
  LayerList layers() const {
    LayerList list;
    list.add("fc", fc).add("between", [call = between](at::Tensor x) { return call(x); });
    list.add("act", torch::nn::Tanh()).add("branches", branches).add("sin", [](at::Tensor x) { return x.sin(); });
    list.add("tanh", torch::nn::Tanh()).add("head", head);
    return list;
  }
  Tensors parameters() {
    Tensors all;
    for (auto* module : modules()) {
      for (auto& parameter : module->parameters()) all.push_back(parameter);
    }
    return all;
  }
};
using Pair = std::vector<Model>;

// Returns two replicas, of which the second skips the side branch.
inline Pair replicas() {
  Pair made{Model(1), Model(2)};
  made[1].branches->takes_side = false;
  return made;
}

inline at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) {
  return (output - target).square().sum(1).mean();
}

struct Batch {
  at::Tensor x, y;
  Batch half(int replica) const { return {x.chunk(2)[replica], y.chunk(2)[replica]}; }
};
inline std::vector<Batch> batches() {
  torch::manual_seed(3);
  std::vector<Batch> made;
  for (int step = 0; step < kSteps; ++step) {
    made.push_back({at::randn({kRows, 5}, at::kDouble), at::randn({kRows, 3}, at::kDouble)});
  }
  return made;
}

// Calls `body` on four ranks, two replicas of a pipeline of two.
using Body = std::function<void(ModulePipeline&, CountedCollectives& data, int replica)>;
inline void on_two_pipelines(Pair& pair, const SyncSpec& sync, const Schedule& schedule, const Body& body,
                             const ModelMemory& memory = {}) {
  const std::vector<LayerList> layers{pair[0].layers(), pair[1].layers()};
  run_ranks(4, [&](Communicator& world) {
    const int replica = world.rank() / 2;
    const auto pipe = world.split(replica, 0, "pipe"), peers = world.split(2 + world.rank() % 2, 0, "data");
    CountedCollectives data(*peers);
    ModulePipeline pipeline(layers[replica], *pipe,
                            {.schedule = schedule, .loss = loss_of, .data = &data, .sync = sync, .memory = memory});
    body(pipeline, data, replica);
  });
}

inline Schedule one_stage_each() { return schedule::one_f_one_b(2, 3); }
inline Schedule two_stages_each() { return make_schedule("interleaved", {.ranks = 2, .microbatches = 2, .chunks = 2}); }

// Buckets of two slices first, then of three.
inline SyncSpec small_buckets() { return {.bucket_mb = 0.02, .first_bucket_mb = 0.01, .overlap = OverlapChoice::On}; }

}  // namespace braid::two_pipelines
