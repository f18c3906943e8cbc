// The guard of the graph's counts, beside that of kept bytes: blocks push as many weight gradients as their ops have
// parameters, and all-reduce over tensor ranks what is listed.
#include "braid/layout/listing.h"
#include "braid/model/families.h"
#include "tests/nn/two_stages.h"
#include "tests/support/counted_collectives.h"
#include "tests/support/drawn_models.h"

namespace braid::nn::op_rows_test {
namespace {

constexpr int kContext = 8, kLayers = 2;

struct Sums {
  int64_t calls = 0, elements = 0;
  bool operator==(const Sums&) const = default;
};

// The embedding and the layers on one rank, for one microbatch.
struct StageWork {
  int64_t pushes = 0;
  Sums forward, backward;
};

StageWork work_of(const ModelSpec& model, Communicator& ranks) {
  CountedCollectives tensor(ranks);
  const auto sums = [&] { return Sums{tensor.all_reduces(), tensor.reduced_elements()}; };
  param::ParamStore store(layout::model_params(model, tensor.rank(), tensor.size()), Reduction::Fast, at::kFloat, 1);
  const auto sink = param::accumulating_sink(store);
  param::WeightGradQueue queue(*sink);
  const spec::Recompute policy;
  const RankContext rank{tensor, queue, kept_by_layers(policy)};
  Segments::Blocks blocks;
  for (int i = 0; i <= kLayers; ++i) blocks.push_back(model_block(model, {i}, store, rank));
  Segments segments(blocks, plan_segments(policy, {1, kLayers, 0}), queue);
  sink->begin_step(1);

  StageWork work;
  Passage passage(stages_microbatch({model}, 0));
  segments.forward({}, passage);
  work.forward = sums();
  const at::Tensor dy = formula_tensor("dy", {kSequences, kContext, model.width}).to(at::kFloat);
  segments.backward(std::move(passage), dy, WeightPass::Later);
  work.backward = {sums().calls - work.forward.calls, sums().elements - work.forward.elements};
  work.pushes = queue.pending();
  queue.run_all();
  return work;
}

// Both norms of heads share a call.
bool shares_a_call(const layout::ListedCollective& sum) { return sum.param == "attention.norm_k.weight"; }

Sums listed(const ModelSpec& model, int ranks, layout::ListedCollective::Pass pass) {
  Sums sums;
  for (const auto& sum : layout::listing_of(model, {.tokens = kSequences * kContext, .tensor = ranks}).collectives) {
    if (sum.pass != pass || sum.block == "head") continue;
    const int64_t times = sum.block == "embedding" ? 1 : kLayers;
    sums.calls += shares_a_call(sum) ? 0 : times;
    sums.elements += times * static_cast<int64_t>(sum.elements);
  }
  return sums;
}

int64_t parameters(const ModelSpec& model) {
  const model::ModelGraph graph = model::graph_of(model);
  int64_t count = 0;
  for (size_t block = 0; block <= kLayers; ++block) {
    for (const model::Op& op : graph.block(block).ops) count += std::ssize(op.params);
  }
  return count;
}

TEST(OpRows, SayWhatBlocksPushAndReduce) {
  using Pass = layout::ListedCollective::Pass;
  DrawnModels models;
  for (int i = 0; i < 20; ++i) {
    const int ranks = models.one_of({1, 2});
    ModelSpec model = models.draw(ranks);
    model.context = kContext;
    model.layers = kLayers;
    if (model.window > 0) model.window = 5;
    run_ranks(ranks, [&](Communicator& tensor) {
      const StageWork work = work_of(model, tensor);
      EXPECT_EQ(work.pushes, parameters(model)) << model.family << " " << i;
      if (ranks == 1) return;
      EXPECT_EQ(work.forward, listed(model, ranks, Pass::Forward)) << model.family << " " << i;
      EXPECT_EQ(work.backward, listed(model, ranks, Pass::Backward)) << model.family << " " << i;
    });
  }
}

}  // namespace
}  // namespace braid::nn::op_rows_test
