// Drawn graphs of branches against the same ops in LibTorch on whole tensors, in float64: output, gradients of input
// and parameters, and the number of sums over tensor ranks.
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <set>

#include "braid/base/text.h"
#include "braid/layout/parameters.h"
#include "braid/layout/tensor_sums.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/op_table.h"
#include "braid/model/shape.h"
#include "braid/nn/lower.h"
#include "braid/nn/opaque.h"
#include "tests/nn/rank_world.h"
#include "tests/support/counted_collectives.h"
#include "tests/support/dice.h"
#include "tests/support/sampled.h"

namespace braid::nn::drawn_graphs_test {
namespace {

using model::BlockBuilder;
using model::OpKind;
using Tensors = std::map<std::string, at::Tensor>;
using Given = std::vector<at::Tensor>;

const ModelSpec kSpec{.layers = 1, .heads = 6, .width = 12, .context = 6, .vocab = 19};

// Draws ops whose outputs are all read in the end.
class Drawing {
 public:
  explicit Drawing(int seed) : dice_(seed), block_(kSpec, "btc") {}

  model::BlockGraph graph() {
    for (int branch = dice_.between(1, 5); branch > 0; --branch) add_branch();
    std::set<int> read;
    for (const model::Op& op : block_.build().ops) read.insert(op.in.begin(), op.in.end());
    std::vector<int> unread;
    for (const int value : hidden_) {
      if (!read.contains(value) && value != 0) unread.push_back(value);
    }
    if (unread.empty()) return block_.build();
    block_.from(unread[0]);
    for (size_t i = 1; i < unread.size(); ++i) block_.plus(unread[i]);
    if (dice_.between(0, 1) == 1) block_.join();
    return block_.build();
  }

 private:
  int any_hidden() { return hidden_[dice_.between(0, static_cast<int>(hidden_.size()) - 1)]; }
  bool coin() { return dice_.between(0, 1) == 1; }
  std::string name() { return cat("p", num_names_++); }
  void keep() { hidden_.push_back(block_.value()); }
  void to_hidden() {
    block_.linear(name(), "c");
    if (coin()) block_.bias();
    keep();
  }

  static std::shared_ptr<const model::OpaqueFunction> function(int kind) {
    return std::make_shared<const model::OpaqueFunction>(
        model::OpaqueFunction{[kind](const at::Tensor& x, const Given& params) {
          if (kind == 0) return x.tanh();
          if (kind == 1) return x;
          if (kind == 2) return x.mul(params[0]);
          return x.mul(params[0].sum());
        }});
  }
  void add_opaque(std::string_view dims) {
    const int input = block_.value();
    if (coin()) to_hidden();
    block_.from(input);
    const int kind = dice_.between(0, 3);
    if (kind < 2) {
      block_.opaque(function(kind), dims);
    } else {
      const std::string last(kind == 2 ? model::text_of({model::dims_of(dims).back()}) : "d");
      block_.opaque(function(kind), dims, {{name(), last}});
    }
  }

  void add_branch() {
    block_.from(any_hidden());
    if (coin()) block_.norm(coin() ? OpKind::LayerNorm : OpKind::RmsNorm, name()), keep();
    switch (dice_.between(0, 6)) {
      case 0:
        block_.linear(name(), "f");
        if (coin()) add_opaque("btf");
        if (coin()) block_.bias().apply(OpKind::Gelu);
        return twice();
      case 1:
        block_.linear(name(), "[f|f]");
        if (coin()) block_.bias();
        if (coin()) add_opaque("bt[f|f]");
        block_.swiglu();
        return twice();
      case 2:
        block_.linear(name(), "[kmd|kd|kd]");
        if (coin()) block_.bias();
        if (coin()) add_opaque("bt[kmd|kd|kd]");
        block_.attention();
        return twice();
      case 3:
        return to_hidden();
      case 4:
        add_opaque("btc");
        return keep();
      case 5:
        block_.plus(any_hidden());
        return keep();
      default:
        block_.linear(name(), "f").bias();
        return twice();
    }
  }
  // One or two products read the value.
  void twice() {
    const int value = block_.value();
    to_hidden();
    if (coin()) block_.from(value), to_hidden();
  }

  Dice dice_;
  BlockBuilder block_;
  std::vector<int> hidden_{0};
  int num_names_ = 0;
};

at::Tensor plain_attention(const at::Tensor& qkv) {
  const int64_t h = kSpec.heads, t = qkv.size(1);
  const at::Tensor heads = qkv.view({qkv.size(0), t, 3 * h, -1}).transpose(1, 2);
  const at::Tensor q = heads.narrow(1, 0, h), k = heads.narrow(1, h, h), v = heads.narrow(1, 2 * h, h);
  const at::Tensor scores = q.matmul(k.transpose(2, 3)).div(std::sqrt(static_cast<double>(q.size(3))));
  const at::Tensor future = at::ones({t, t}, at::kBool).triu(1);
  return scores.masked_fill(future, -INFINITY).softmax(-1).matmul(v).transpose(1, 2).flatten(2);
}

at::Tensor plain(const model::Op& op, const std::vector<at::Tensor>& values, const Tensors& p) {
  const at::Tensor& x = values[op.in[0]];
  const auto param = [&](size_t i) { return p.at(op.params[i].name); };
  switch (op.kind) {
    case OpKind::LayerNorm:
      return at::layer_norm(x, {x.size(-1)}, param(0), param(1), kSpec.norm_eps);
    case OpKind::RmsNorm:
      return x.mul(x.square().mean(-1, true).add(kSpec.norm_eps).rsqrt()).mul(param(0));
    case OpKind::Linear:
      return at::linear(x, param(0));
    case OpKind::Bias:
      return x.add(param(0));
    case OpKind::Gelu:
      return at::gelu(x, "tanh");
    case OpKind::SwiGlu: {
      const auto halves = x.chunk(2, -1);
      return halves[0].mul(halves[0].sigmoid()).mul(halves[1]);
    }
    case OpKind::Attention:
      return plain_attention(x);
    case OpKind::Residual:
      return x.add(values[op.in[1]]);
    default: {
      Given params;
      for (size_t i = 0; i < op.params.size(); ++i) params.push_back(param(i));
      return op.function->forward(x, params);
    }
  }
}

at::Tensor input() { return formula_tensor("x", {2, 6, kSpec.width}).requires_grad_(); }

Tensors reference(const model::ModelGraph& graph) {
  Tensors params, results;
  const layout::ModelParams listed = layout::model_params(kSpec, graph, {0, 1, mesh::Axis::Tensor});
  for (const layout::ParamSpec& p : listed[0].params) {
    params[p.name] = formula_parameter(p.name, p.placement.global_shape).requires_grad_();
  }
  const model::BlockGraph& block = graph.block(0);
  std::vector<at::Tensor> values(block.values.size());
  values[0] = input();
  for (const model::Op& op : block.ops) values[op.out] = plain(op, values, params);
  const at::Tensor y = values[block.ops.back().out];
  y.mul(formula_tensor("cotangent", y.sizes())).sum().backward();
  results["y"] = y.detach(), results["dx"] = values[0].grad();
  for (const auto& [name, p] : params) results["grad." + name] = p.grad();
  return results;
}

int expected_sums(const model::BlockGraph& block) {
  const std::vector<bool> summed = layout::summed_values(block);
  auto count = static_cast<int>(std::ranges::count(summed, true));
  std::set<int> copied;
  for (const model::Op& op : block.ops) {
    if (layout::sums_input_gradient(block, op)) copied.insert(op.in[0]);
    for (const model::Param& param : op.params) count += layout::sums_gradient_of(block, op, param) ? 1 : 0;
  }
  return count + static_cast<int>(copied.size());
}

// A rank's part of all tokens.
at::Tensor part_of(const at::Tensor& x_btc, const kernels::TokenPart& part) {
  const int64_t t = x_btc.size(1) / part.count;
  return x_btc.detach().narrow(1, part.number * t, t).clone().requires_grad_();
}

mesh::Placement placement_of(const at::Tensor& part_btc, const RankContext& rank) {
  mesh::Index all = part_btc.sizes().vec();
  all[1] *= rank.token_part().count;
  const int ranks = static_cast<int>(rank.token_part().count);
  return mesh::split_dim(all, 1, all[1], {static_cast<int>(rank.token_part().number), ranks});
}

// Adds the parts of gradients, as sync/copies_sink.h does.
void sum_copies(const RankWorld& world, Communicator& group) {
  for (const param::Parameter& p : world.store.params()) {
    if (p.placement.pieces[0].copies == group.size()) group.all_reduce(p.main_grad, ReduceOp::Sum).wait_host();
  }
}

struct Ranks {
  int number;
  Keep keep;
  layout::Sequence tokens;
};

Tensors on_ranks(const model::ModelGraph& graph, const Ranks& like) {
  const int n = like.number;
  Gathering results(n);
  run_ranks(n, [&](Communicator& group) {
    const int r = group.rank();
    CountedCollectives tensor(group);
    layout::ModelParams params = layout::model_params(kSpec, graph, {r, n, mesh::Axis::Tensor});
    const bool splits = like.tokens == layout::Sequence::Split;
    if (splits) layout::split_tokens(graph, {r, n, mesh::Axis::Tensor}, params);
    RankWorld world(params, tensor);
    world.context.keep = like.keep, world.context.tokens = like.tokens;
    const kernels::TokenPart part = world.context.token_part();
    const std::unique_ptr<Block> block = lower(kSpec, graph, {0}, world.store, world.context);
    world.sink->begin_step(1);
    const at::Tensor x = part_of(input(), part), y = block->forward(x, {});
    results.put("y", r, placement_of(y, world.context), y);
    const at::Tensor cotangent = formula_tensor("cotangent", input().sizes());
    y.mul(part_of(cotangent, part).detach()).sum().backward();
    results.put("dx", r, placement_of(x, world.context), x.grad());
    world.queue.run_all();
    if (n > 1 && splits) {
      sum_copies(world, group);
    } else if (n > 1) {
      EXPECT_EQ(tensor.all_reduces(), expected_sums(graph.block(0)));
    }
    results.put_gradients(r, world);
  });
  return results.global();
}

TEST(DrawnGraphs, AreThoseOfLibTorch) {
  int sound = 0;
  const int seeds = full_run() ? 300 : 60;
  for (int seed = 0; seed < seeds; ++seed) {
    const model::ModelGraph graph{{Drawing(seed).graph()}, {0}};
    if (graph.block(0).ops.empty() || !model::problems_of(graph.block(0)).empty()) continue;
    ++sound;
    SCOPED_TRACE(cat("seed ", seed, "\n", model::text_of(graph.block(0))));
    const Tensors expected = reference(graph);
    for (const int n : {1, 2, 3}) {
      for (const Keep keep : {Keep::Everything, Keep::Selected}) {
        for (const auto tokens : {layout::Sequence::Whole, layout::Sequence::Split}) {
          SCOPED_TRACE(cat(n, " ranks, keep ", static_cast<int>(keep), ", tokens ", static_cast<int>(tokens)));
          expect_equal(on_ranks(graph, {n, keep, tokens}), expected, 1e-9);
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(sound, seeds / 2);
}

}  // namespace
}  // namespace braid::nn::drawn_graphs_test
