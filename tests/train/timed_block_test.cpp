// The timed parts of a block are those that predictions count.
#include "braid/train/timed_block.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/comm/local/run_ranks.h"
#include "braid/param/param_store.h"
#include "braid/plan/block_sizes.h"
#include "braid/plan/block_work.h"
#include "braid/plan/run_layout.h"
#include "braid/train/kernel_probe.h"

namespace braid::train::timed_block_test {
namespace {

static_assert(plan::kBraidAlignment == param::ParamStore::kAlign, "predictions count the gaps between parameters");

// A rank has half of the tensors, and of the passes over memory what all tensor ranks do alike.
RunSpec small(ModelFamily family) {
  RunSpec spec;
  spec.model.family = family;
  spec.model.width = 64;
  spec.model.heads = 4;
  spec.model.context = 32;
  spec.train.microbatch = 2;
  spec.mesh.tensor = 2;
  return spec;
}

// Llama has gated branches and rotary positions, GPT-2 has biases.
//
// Elements that predictions count for each token, there and back, and no timed kernel reads or writes: heads that are
// gathered and turned, and what gradients of biases sum.
double not_timed(const plan::BlockSizes& z, double tensor) {
  const double heads = 2 * (2 * z.q + (z.gated ? 2 * (z.q + z.kv) : 0));
  return heads / tensor + (z.gated ? 0 : (z.q + 2 * z.kv + z.f) / tensor + 2 * z.h);
}

// Returns the elements of each token: two norms and two sums with the residual 10 h there and 12 h back, dropout 4 h
// more back, the heads gathered and in Llama turned each way, the activation, and in GPT-2 what gradients of biases
// sum; and masks, of a byte, twice there and twice back.
double streamed_elements(const plan::BlockSizes& z) {
  const double heads = 2 * z.q + (z.gated ? 2 * (z.q + z.kv) : 0),
               biases = z.gated ? 0 : z.q + 2 * z.kv + z.f + 2 * z.h;
  return 26 * z.h + 2 * heads + (z.gated ? 8 : 5) * z.f + biases;
}

TEST(BlockInTraining, ItsBytesAreThoseOfPredictions) {
  for (const ModelFamily family : {ModelFamily::Gpt2, ModelFamily::Llama}) {
    RunSpec spec = small(family);
    spec.mesh.tensor = 1;
    spec.model.dropout = 0.1;
    const plan::BlockSizes z(spec.model, 1);
    run_ranks(1, [&](Communicator& world) {
      BlockInTraining block(spec, world);
      EXPECT_EQ(block.streamed_bytes(), 64 * (4 * streamed_elements(z) + 4 * z.h));
      std::vector<double> rounds;
      for (int i = 0; i < 3; ++i) rounds.push_back(block.round());
      std::ranges::sort(rounds);
      EXPECT_GT(rounds[0], 0);
      EXPECT_EQ(block.seconds(), rounds[1]);
    });
  }
}

TEST(TimedBlock, ItsProductsAndBytesAreThoseOfPredictions) {
  for (const ModelFamily family : {ModelFamily::Gpt2, ModelFamily::Llama}) {
    const RunSpec spec = small(family);
    plan::RunLayout layout;
    layout.tokens = 64;
    layout.tensor = 2;
    plan::set_account(std::make_shared<const layout::ModelAccount>(layout::account_of(spec.model)), spec.mesh, layout);
    const plan::PartWork parts[] = {plan::part_work(spec, layout, 0, plan::FormulaSet::Braid),
                                    plan::part_work(spec, layout, 1, plan::FormulaSet::Braid)};
    std::vector<double> predicted, timed;
    double bytes = -64 * plan::element_bytes(spec.train.dtype) * not_timed(plan::BlockSizes(spec.model, 2), 2);
    for (const plan::PartWork& part : parts) {
      for (const plan::Product& product : part.forward.products) predicted.push_back(product.flops);
      bytes += part.forward.streamed_bytes + part.input_grad.streamed_bytes;
    }
    run_ranks(1, [&](Communicator& world) {
      const TimedBlock block(spec, at::kCPU, world);
      for (const TimedLinear& layer : block.layers()) timed.push_back(layer.flops());
      EXPECT_EQ(block.elements().bytes(), bytes);
    });
    EXPECT_EQ(timed, predicted);
  }
}

}  // namespace
}  // namespace braid::train::timed_block_test
