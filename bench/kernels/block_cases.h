// A whole block of GPT-2 124M, forward and backward with its weight gradients: with the fused kernels, and with the
// same products and attention but LibTorch's norm, GELU and additions between them.
#pragma once

#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>

#include "bench/kernels/kernel_case.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/layout/parameters.h"
#include "braid/nn/attention.h"
#include "braid/nn/linear.h"
#include "braid/nn/model.h"
#include "braid/param/grad_sink.h"

namespace braid::bench {

class ComposedBlock {
 public:
  ComposedBlock(param::ParamStore& store, int heads, const nn::RankContext& rank)
      : store_(store), heads_(heads), rank_(rank) {}
  at::Tensor forward(const at::Tensor& x, const nn::Microbatch& m) {
    const at::Tensor qkv = linear(norm(x, "ln_1"), "attention.qkv", m);
    const nn::Activation heads = nn::attention_core(qkv, {.heads = heads_, .kv_heads = heads_});
    const at::Tensor y = x.add(linear(heads, "attention.projection", m));
    return y.add(linear(at::gelu(linear(norm(y, "ln_2"), "mlp.up", m), "tanh"), "mlp.down", m));
  }

 private:
  param::Parameter* param(const std::string& name) { return &store_["blocks.0." + name]; }
  at::Tensor linear(const nn::Activation& x, const std::string& name, const nn::Microbatch& m) {
    return nn::linear(x, {{param(name + ".weight"), 0}, param(name + ".bias"), &rank_.weight_grads, m.micro});
  }
  at::Tensor norm(const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {x.size(-1)}, param(name + ".weight")->data, param(name + ".bias")->data, 1e-5);
  }

  param::ParamStore& store_;
  int heads_;
  nn::RankContext rank_;
};

// The inputs of both blocks, and their gradients, once per block.
struct BlockWorld {
  BlockWorld(const ModelSpec& spec, Communicator& alone, at::ScalarType dtype)
      : store({layout::model_params(spec, 0, 1)[1]}, Reduction::Fast, dtype, 1),
        sink(param::accumulating_sink(store)),
        queue(*sink),
        context{alone, queue} {}
  void run(const std::function<at::Tensor(const at::Tensor&)>& forward, const at::Tensor& x, const at::Tensor& dy) {
    sink->begin_step(1);
    forward(x.detach().requires_grad_()).backward(dy);
    queue.run_all();
    for (const param::Parameter& p : store.params()) p.data.mutable_grad() = at::Tensor();
  }

  param::ParamStore store;
  std::unique_ptr<param::GradSink> sink;
  param::WeightGradQueue queue;
  nn::RankContext context;
};

struct BlockSize {
  int64_t b, t;
};
inline void add_block_case(std::vector<KernelCase>& cases, const BlockSize& size, Communicator& alone,
                           at::ScalarType dtype) {
  ModelSpec spec;
  spec.layers = 1, spec.heads = 12, spec.width = 768, spec.context = 1024, spec.vocab = 64;
  const auto world = std::make_shared<BlockWorld>(spec, alone, dtype);
  const std::shared_ptr<nn::Block> fused = nn::model_block(spec, {1}, world->store, world->context);
  const auto composed = std::make_shared<ComposedBlock>(world->store, spec.heads, world->context);
  const at::Tensor x = random({size.b, size.t, spec.width}, dtype), dy = random({size.b, size.t, spec.width}, dtype);
  cases.push_back({"GPT-2 block, both ways",
                   cat(size.b, " x ", size.t),
                   0,
                   {},
                   [=] { world->run([&](const at::Tensor& in) { return fused->forward(in, {}); }, x, dy); },
                   [=] { world->run([&](const at::Tensor& in) { return composed->forward(in, {}); }, x, dy); }});
}

}  // namespace braid::bench
