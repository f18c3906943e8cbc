// A case of the tests of ops: ops on tensor ranks against composed LibTorch operations on global tensors, in float64:
// forward, gradient of the input and of every weight, over two microbatches.
#pragma once

#include <ATen/ops/constant_pad_nd.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "braid/layout/parameters.h"
#include "braid/layout/tensor_sums.h"
#include "braid/model/graph.h"
#include "braid/nn/lower.h"
#include "braid/nn/regions.h"
#include "tests/nn/rank_world.h"

namespace braid::nn::op_case {

using Tensors = std::map<std::string, at::Tensor>;
inline constexpr int64_t kBatch = 2, kTime = 5, kVocab = 19;
inline constexpr int kMicrobatches = 2;

// The model of which a case is a block.
inline ModelSpec spec_of(int heads) {
  ModelSpec spec;
  spec.layers = 1, spec.heads = heads, spec.width = 2 * heads, spec.context = kTime + 2;
  spec.vocab = kVocab, spec.vocab_multiple = 1;
  return spec;
}

// Ops under test, and the same with composed operations. x is undefined for a block that begins with tokens.
struct Case {
  std::function<model::BlockGraph(const ModelSpec& spec)> ops;
  std::function<at::Tensor(const ModelSpec& spec, Tensors& params, const at::Tensor& x, const Microbatch&)> reference;
};

inline bool is_split(const model::Dims& dims) { return !layout::split_letters(dims).empty(); }

inline Microbatch microbatch_of(int micro) {
  Microbatch m;
  m.micro = micro;
  m.tokens_bt = formula_integers("tokens" + std::to_string(micro), {kBatch, kTime}, kVocab);
  m.targets_bt = formula_integers("targets" + std::to_string(micro), {kBatch, kTime}, kVocab);
  return m;
}

inline at::Tensor input_of(const ModelSpec& spec, const model::BlockGraph& block, int micro) {
  const model::Dims& dims = block.values[0];
  if (dims.size() < 3) return {};
  return formula_tensor("x" + std::to_string(micro), model::extents_of(spec, kBatch, kTime).shape(dims))
      .requires_grad_();
}

// Weighs the outputs unevenly; a loss as it is.
inline at::Tensor scalar_of(const at::Tensor& y) {
  return y.dim() == 0 ? y : y.mul(formula_tensor("cotangent", y.sizes())).sum();
}

// Returns this rank's slice of the last dim. Each rank has the gradient of all slices.
inline at::Tensor own_slice(const at::Tensor& x, Communicator& group) {
  const int64_t extent = x.size(-1) / group.size();
  return copy_to(x, group, x.scalar_type())
      .narrow(-1, group.rank() * extent, extent)
      .clone(at::MemoryFormat::Contiguous);
}

// Returns the slices of all ranks along the last dim, as a sum of slices padded with zeros.
inline at::Tensor all_slices(const at::Tensor& slice, Communicator& group) {
  const int64_t extent = slice.size(-1), before = group.rank() * extent;
  return reduce_from_(at::constant_pad_nd(slice, {before, (group.size() - 1) * extent - before}), group);
}

inline Tensors run_parallel(const Case& c, int n, const ModelSpec& spec) {
  Gathering results(n);
  run_ranks(n, [&](Communicator& group) {
    const int r = group.rank();
    const model::ModelGraph graph{{c.ops(spec)}, {0}};
    const model::BlockGraph& ops = graph.block(0);
    RankWorld world(layout::model_params(spec, graph, {r, n, mesh::Axis::Tensor}), group);
    const std::unique_ptr<Block> block = lower(spec, graph, {0}, world.store, world.context);
    world.sink->begin_step(kMicrobatches);
    for (int micro = 0; micro < kMicrobatches; ++micro) {
      const at::Tensor x = input_of(spec, ops, micro);
      at::Tensor y = block->forward(is_split(ops.values[0]) ? own_slice(x, group) : x, microbatch_of(micro));
      if (is_split(ops.values.back())) y = all_slices(y, group);
      scalar_of(y).backward();
      results.put_replicated("y" + std::to_string(micro), r, y);
      if (x.defined()) results.put_replicated("dx" + std::to_string(micro), r, x.grad());
    }
    world.queue.run_all();
    results.put_gradients(r, world);
  });
  return results.global();
}

inline Tensors run_reference(const Case& c, const ModelSpec& spec) {
  const model::ModelGraph graph{{c.ops(spec)}, {0}};
  Tensors params, results;
  const layout::ModelParams listed = layout::model_params(spec, graph, {0, 1, mesh::Axis::Tensor});
  for (const layout::ParamSpec& p : listed[0].params) {
    params[p.name] = formula_parameter(p.name, p.placement.global_shape).requires_grad_();
  }
  for (int micro = 0; micro < kMicrobatches; ++micro) {
    const at::Tensor x = input_of(spec, graph.block(0), micro);
    const at::Tensor y = c.reference(spec, params, x, microbatch_of(micro));
    scalar_of(y).backward();
    results["y" + std::to_string(micro)] = y.detach();
    if (x.defined()) results["dx" + std::to_string(micro)] = x.grad();
  }
  for (const auto& [name, p] : params) results["grad." + name] = p.grad();
  return results;
}

// Expects the same numbers on `ranks` tensor ranks, for a model of so many heads.
inline void expect_transparent(const Case& c, int ranks, int heads) {
  expect_equal(run_parallel(c, ranks, spec_of(heads)), run_reference(c, spec_of(heads)), 1e-12);
}

}  // namespace braid::nn::op_case
