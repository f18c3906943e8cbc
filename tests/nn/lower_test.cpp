// Lowering beyond the numbers of layers_test.cpp. Ops share sums, a bias goes into the place that rounds least, a value
// is dropped after its last reader, and some graphs are refused.
#include "braid/nn/lower.h"

#include "braid/base/errors.h"
#include "braid/layout/parameters.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/nn/graph_block.h"
#include "braid/nn/linear.h"
#include "braid/nn/opaque.h"
#include "tests/nn/rank_world.h"
#include "tests/support/counted_collectives.h"

namespace braid::nn::lower_test {
namespace {

using model::BlockBuilder;
using model::OpKind;

ModelSpec small_spec() {
  return {.family = ModelFamily::Llama, .layers = 1, .heads = 2, .width = 8, .context = 4, .vocab = 8};
}

// A block of these ops on one rank.
struct OneBlock {
  OneBlock(const ModelSpec& spec, const model::BlockGraph& ops, Communicator& tensor, at::ScalarType dtype)
      : graph{{ops}, {0}},
        world(layout::model_params(spec, graph, {tensor.rank(), tensor.size(), mesh::Axis::Tensor}), tensor, dtype),
        block(lower(spec, graph, {0}, world.store, world.context)) {
    world.sink->begin_step(1);
  }

  model::ModelGraph graph;
  RankWorld world;
  std::unique_ptr<Block> block;
};

model::BlockGraph two_branches(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  const int normed = block.norm(OpKind::RmsNorm, "norm").value();
  const int first = block.linear("a.up", "f").linear("a.down", "c").value();
  block.from(normed).linear("b.up", "f").linear("b.down", "c");
  return block.plus(first).join().build();
}

TEST(Lower, BranchesInParallelShareTheirSums) {
  run_ranks(2, [](Communicator& ranks) {
    CountedCollectives tensor(ranks);
    OneBlock one(small_spec(), two_branches(small_spec()), tensor, at::kDouble);
    const at::Tensor x = formula_tensor("x", {1, 4, 8}).requires_grad_();
    const at::Tensor y = one.block->forward(x, {});
    EXPECT_EQ(tensor.all_reduces(), 1);
    y.sum().backward();
    EXPECT_EQ(tensor.all_reduces(), 2);
  });
}

// A bias in the product is rounded with it, as in LibTorch's addmm.
TEST(Lower, ABiasGoesIntoItsProduct) {
  run_ranks(1, [](Communicator& alone) {
    const ModelSpec spec = small_spec();
    OneBlock one(spec, BlockBuilder(spec, "btc").linear("up", "f").bias().build(), alone, at::kBFloat16);
    const at::Tensor x = formula_tensor("x", {1, 4, 8}).to(at::kBFloat16);
    param::ParamStore& store = one.world.store;
    const LinearCall call{{&store["up.weight"], 0}, &store["up.bias"], &one.world.queue, 0};
    EXPECT_TRUE(one.block->forward(x, {}).equal(linear(x, call)));
  });
}

TEST(Lower, ABiasWithDropoutBeforeAResidualIsDroppedWithItsBranch) {
  run_ranks(1, [](Communicator& alone) {
    ModelSpec spec = small_spec();
    spec.dropout = 0.5;
    OneBlock one(spec, BlockBuilder(spec, "btc").linear("up", "c").bias().dropout().join().build(), alone, at::kDouble);
    const at::NoGradGuard no_grad;
    one.world.store["up.weight"].data.zero_();
    one.world.store["up.bias"].data.fill_(1);
    Microbatch microbatch;
    const at::Tensor x = at::zeros({8, 4, 8}, at::kDouble), y = one.block->forward(x, microbatch);
    EXPECT_TRUE(y.eq(0).logical_or(y.eq(2)).all().item<bool>());
    EXPECT_TRUE(y.eq(0).any().item<bool>() && y.eq(2).any().item<bool>());
    microbatch.training = false;
    EXPECT_TRUE(one.block->forward(x, microbatch).eq(1).all().item<bool>());
  });
}

// tests/plan/one_source_test.cpp drops the same norm and looks at all that is counted.
TEST(Lower, ANormThatAFamilyDropsIsNotExecuted) {
  run_ranks(1, [](Communicator& alone) {
    const ModelSpec spec = small_spec();
    const auto branch = [&](BlockBuilder block) { return block.linear("up", "f").linear("down", "c").join().build(); };
    OneBlock with(spec, branch(BlockBuilder(spec, "btc").norm(OpKind::RmsNorm, "norm")), alone, at::kDouble);
    OneBlock without(spec, branch(BlockBuilder(spec, "btc")), alone, at::kDouble);
    const at::Tensor x = formula_tensor("x", {1, 4, 8}).mul_(3).requires_grad_();
    const at::Tensor normed = with.block->forward(x, {}), plain = without.block->forward(x, {});
    EXPECT_GT(relative_error(normed, plain), 1e-3);
    normed.sum().backward(), plain.sum().backward();
    EXPECT_EQ(with.world.queue.pending(), 3);
    EXPECT_EQ(without.world.queue.pending(), 2);
  });
}

TEST(Lower, RefusesOutputsThatAnOpaqueOpDoesNotState) {
  run_ranks(1, [](Communicator& alone) {
    const ModelSpec spec = small_spec();
    const auto run = [&](std::function<at::Tensor(const at::Tensor&)> change) {
      const auto function = std::make_shared<const model::OpaqueFunction>(
          model::OpaqueFunction{[=](const at::Tensor& x, const std::vector<at::Tensor>&) { return change(x); }});
      OneBlock one(spec, BlockBuilder(spec, "btc").linear("up", "f").opaque(function, "btf").build(), alone,
                   at::kDouble);
      one.block->forward(formula_tensor("x", {1, 4, 8}), {});
    };
    EXPECT_NO_THROW(run([](const at::Tensor& x) { return x; }));
    EXPECT_THROW(run([](const at::Tensor& x) { return x.sum(-1, true); }), ConfigError);
    EXPECT_THROW(run([](const at::Tensor& x) { return x.to(at::kFloat); }), ConfigError);
  });
}

// x and the gradient of the other branch share memory with what the opaque op returns.
TEST(Lower, BackwardsDoNotOverwriteGradientsThatOthersRead) {
  run_ranks(1, [](Communicator& alone) {
    const ModelSpec spec = small_spec();
    const auto view = std::make_shared<const model::OpaqueFunction>(model::OpaqueFunction{
        [](const at::Tensor& x, const std::vector<at::Tensor>&) { return x.flatten().view(x.sizes()); }});
    BlockBuilder block(spec, "btc");
    const int straight = block.linear("a", "[kmd|kd|kd]").value();
    block.from(0).linear("b", "[kmd|kd|kd]").apply(OpKind::Rotary).opaque(view, "bt[kmd|kd|kd]").plus(straight);
    OneBlock one(spec, block.build(), alone, at::kDouble);
    const at::Tensor x = formula_tensor("x", {1, 4, 8}), cotangent = formula_tensor("cotangent", {1, 4, 24});
    one.block->forward(x, {}).mul(cotangent).sum().backward();
    one.world.queue.run_all();
    const at::Tensor expected = cotangent[0].t().matmul(x[0]);
    EXPECT_LT(relative_error(one.world.store["a.weight"].main_grad, expected), 1e-12);
  });
}

TEST(GraphBlock, DropsAValueAfterItsLastReader) {
  const auto ones = [] { return at::ones({2}); };
  bool is_dropped = false;
  std::vector<Call> calls;
  calls.push_back({[&](Frame& frame, const Microbatch&) { frame[1] = ones(); }, {0, 1}});
  calls.push_back({[&](Frame& frame, const Microbatch&) { frame[2] = frame[1].value.add(1); }, {1, 2}});
  calls.push_back({[&](Frame& frame, const Microbatch&) { is_dropped = !frame[1].value.defined(); }, {2}});
  GraphBlock block(std::move(calls), {.num_values = 3, .input = 0, .output = 2});
  EXPECT_TRUE(block.forward(ones(), {}).eq(2).all().item<bool>());
  EXPECT_TRUE(is_dropped);
}

TEST(Lower, RefusesOpsThatArePlannedAlone) {
  run_ranks(1, [](Communicator& alone) {
    const ModelSpec spec = small_spec();
    const auto gelu = BlockBuilder(spec, "btc").linear("up", "f").apply(OpKind::Gelu).linear("down", "c").build();
    EXPECT_THROW(OneBlock(spec, gelu, alone, at::kDouble), InternalError) << "no bias before it";
    EXPECT_THROW(OneBlock(spec, BlockBuilder(spec, "btc").apply(OpKind::Route).build(), alone, at::kDouble),
                 InternalError);
  });
}

}  // namespace
}  // namespace braid::nn::lower_test
