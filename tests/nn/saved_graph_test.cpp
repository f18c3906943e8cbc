// Functions and blocks of programs that hold their input themselves, with activations on disk: the gradients of memory.
#include "braid/param/saved_graph.h"

#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "braid/nn/opaque.h"
#include "braid/nn/segments.h"
#include "tests/nn/formula_values.h"

namespace braid::nn::saved_graph_test {
namespace {

std::shared_ptr<param::SwapSpace> space() {
  return std::make_shared<param::SwapSpace>(param::SwapOptions{.place = {.folders = {"."}, .bytes = 1 << 20}});
}

at::Tensor input() { return formula_tensor("x", {2, 64, 16}); }

// Returns sin(x), whose gradient is multiplied by x in backward; the hook has the very tensor that was given.
at::Tensor held(const at::Tensor& x) {
  const at::Tensor y = x.sin();
  y.register_hook([given = std::make_shared<at::Tensor>(x)](const at::Tensor& dy) {
    return dy.mul(std::exchange(*given, {}).detach());  // once, so that the graph does not hold itself
  });
  return y;
}

at::Tensor gradient_of_opaque(bool moves) {
  OpaqueCall call;
  call.function = std::make_shared<const model::OpaqueFunction>(
      model::OpaqueFunction{[](const at::Tensor& x, const std::vector<at::Tensor>&) { return held(x); }});
  call.in = call.out = model::dims_of("btc");
  call.extents['b'] = 2, call.extents['t'] = 64, call.extents['c'] = 16;
  const at::Tensor x = input().requires_grad_(true);
  param::SavedGraph graph(space(), [](const c10::Storage&) { return true; });
  at::Tensor y;
  {
    std::optional<param::SavedGraph::Scope> scope;
    if (moves) scope.emplace(graph);
    y = opaque(x, call);
  }
  y.backward(at::ones_like(y));
  return x.grad();
}

TEST(SavedGraph, LeavesWhatOpaqueFunctionsHold) {
  const at::Tensor want = gradient_of_opaque(false);
  EXPECT_TRUE(want.equal(input().mul(input().cos()))) << "the hook ran";
  EXPECT_TRUE(gradient_of_opaque(true).equal(want));
}

class Holding final : public Block {
 public:
  at::Tensor forward(const at::Tensor& x, const Microbatch&) override { return held(x); }
};

TEST(SavedGraph, LeavesWhatBlocksHold) {
  Segments::Blocks blocks;
  for (int i = 0; i < 2; ++i) blocks.push_back(std::make_unique<Holding>());
  param::ParamStore store({}, Reduction::Fast, at::kDouble, 1);
  const auto sink = param::accumulating_sink(store);
  param::WeightGradQueue queue(*sink);
  const auto gradient = [&](bool moves) {
    Segments segments(blocks, block_by_block(plan_segments(*spec::recompute_policy("none"), {0, 2, 0})), queue);
    if (moves) segments.keep_in(space(), 2);
    Passage passage;
    const at::Tensor y = segments.forward(input(), passage);
    return segments.backward(std::move(passage), at::ones_like(y).detach(), WeightPass::AtOnce);
  };
  EXPECT_TRUE(gradient(true).equal(gradient(false)));
}

}  // namespace
}  // namespace braid::nn::saved_graph_test
