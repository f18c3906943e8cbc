// The guard of the graph's counts, beside that of kept bytes: blocks push as many weight gradients as their ops have
// parameters, and all-reduce, gather and scatter over tensor ranks what is listed.
#include <functional>
#include <map>

#include "braid/base/seeds.h"
#include "braid/layout/frozen.h"
#include "braid/layout/listing.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/trained.h"
#include "braid/nn/lower.h"
#include "tests/nn/two_stages.h"
#include "tests/support/counted_collectives.h"
#include "tests/support/drawn_models.h"

namespace braid::nn::op_rows_test {
namespace {

constexpr int kContext = 8, kLayers = 2;
constexpr int64_t kFloatBytes = 4;

using Kind = layout::ListedCollective::Kind;
struct Sums {
  int64_t calls = 0, elements = 0, bytes = 0;
  bool operator==(const Sums&) const = default;
};
using Collectives = std::map<Kind, Sums>;
using IsFrozen = std::function<bool(const std::string& name)>;

const IsFrozen kTrainsAll = [](const std::string&) { return false; };

// A third of the parameters, or all before a layer and some in it. The head is not run here. Both norms of heads are
// frozen or none: they share a sum.
IsFrozen drawn_frozen(uint64_t seed) {
  return [seed](const std::string& name) {
    if (seed % 2 == 0 && (name.starts_with("w") || (name.starts_with("blocks.0.") && seed % 4 == 0))) return true;
    const std::string drawn = name.substr(0, name.rfind("_k.weight"));
    return name != "blocks.1.mlp.down.weight" &&
           random_bits(stream_key(seed, drawn.substr(0, drawn.rfind("_q.weight"))), 0) % 3 == 0;
  };
}

// Returns the first of the blocks that has a trained parameter.
int first_trained(const layout::ModelParams& params) {
  int block = 0;
  const auto trains = [](const layout::ParamSpec& param) { return param.trained == model::Trained::Yes; };
  while (std::ranges::none_of(params[block].params, trains)) ++block;
  return block;
}

Collectives counted(const CountedCollectives& tensor) {
  return {{Kind::AllReduce, {tensor.all_reduces(), tensor.reduced_elements(), tensor.reduced_bytes()}},
          {Kind::AllGather, {tensor.gathers(), tensor.gathered_elements(), tensor.gathered_bytes()}},
          {Kind::ReduceScatter, {tensor.scatters(), tensor.scattered_elements(), tensor.scattered_bytes()}}};
}

// The type of activations and the parts of sums (layout::TensorParts) on each rank; none: in any order.
struct Numbers {
  at::ScalarType type = at::kFloat;
  int parts = 0;
};

// The embedding and the layers on one rank, for one microbatch.
struct StageWork {
  int64_t pushes = 0;
  Collectives forward, backward;
};

struct Model {
  ModelSpec spec;
  model::ModelGraph graph;
};
Model model_of(const ModelSpec& spec) { return {spec, model::graph_of(spec)}; }

struct StageOptions {
  layout::Sequence tokens = layout::Sequence::Whole;
  Numbers numbers = {};
};
StageWork work_of(const Model& of, const StageOptions& options, const IsFrozen& is_frozen, Communicator& ranks) {
  const auto& [model, graph] = of;
  CountedCollectives tensor(ranks);
  layout::ModelParams params = layout::model_params(model, graph, {tensor.rank(), tensor.size(), mesh::Axis::Tensor});
  layout::mark_frozen(params, is_frozen);
  const auto& [tokens, numbers] = options;
  param::ParamStore store(params, Reduction::Fast, numbers.type, 1);
  const auto sink = param::accumulating_sink(store);
  param::WeightGradQueue queue(*sink, {numbers.parts, numbers.parts});
  const spec::Recompute policy;
  const RankContext rank{tensor, queue, kept_by_layers(policy), tokens};
  Segments::Blocks blocks;
  for (int i = 0; i <= kLayers; ++i) blocks.push_back(lower(model, graph, {i}, store, rank));
  const int last = first_trained(params);
  Segments segments(blocks, cut_before(plan_segments(policy, {1, kLayers, 0}), last), queue, last);
  sink->begin_step(1);

  StageWork work;
  Passage passage(stages_microbatch({model}, 0));
  segments.forward({}, passage);
  work.forward = work.backward = counted(tensor);
  const int64_t parts = tokens == layout::Sequence::Split ? tensor.size() : 1;
  const at::Tensor dy = formula_tensor("dy", {kSequences, kContext / parts, model.width}).to(numbers.type);
  segments.backward(std::move(passage), dy, WeightPass::Later);
  for (const auto& [kind, all] : counted(tensor)) {
    const Sums& before = work.forward[kind];
    work.backward[kind] = {all.calls - before.calls, all.elements - before.elements, all.bytes - before.bytes};
  }
  work.pushes = queue.pending();
  queue.run_all();
  return work;
}

// Both norms of heads share a call.
bool shares_a_call(const layout::ListedCollective& sum) { return sum.param == "attention.norm_k.weight"; }

// The sums of gradients of parameters between products are not the block's, but the sink's.
bool is_of_sink(const layout::ListedCollective& sum, const layout::Listing& listing) {
  const layout::ListedOp& op = listing.ops[sum.op];
  return op.split.empty() && sum.kind == Kind::AllReduce && sum.pass == layout::ListedCollective::Pass::Backward;
}

Collectives listed(const layout::Listing& listing, int64_t element_bytes, layout::ListedCollective::Pass pass) {
  Collectives all{{Kind::AllReduce, {}}, {Kind::AllGather, {}}, {Kind::ReduceScatter, {}}};
  for (const auto& sum : listing.collectives) {
    if (sum.pass != pass || sum.block == "head" || is_of_sink(sum, listing)) continue;
    const auto times = static_cast<int64_t>(listing.ops[sum.op].count);
    all[sum.kind].calls += shares_a_call(sum) ? 0 : times;
    const int64_t elements = times * static_cast<int64_t>(sum.elements);
    all[sum.kind].elements += elements;
    all[sum.kind].bytes += elements * (sum.in_float ? kFloatBytes : element_bytes);
  }
  return all;
}

int64_t trained_parameters(const model::ModelGraph& graph) {
  int64_t count = 0;
  for (size_t block = 0; block <= kLayers; ++block) {
    for (const model::Op& op : graph.block(block).ops) count += std::ranges::count_if(op.params, model::is_trained);
  }
  return count;
}

// Expects the listed calls and bytes, with all parameters trained and with some frozen.
void expect_listed(const Model& model, int ranks, const StageOptions& options, int number) {
  using Pass = layout::ListedCollective::Pass;
  const auto sums = options.numbers.parts > 0 ? layout::TensorSums::ByValue : layout::TensorSums::Joined;
  const layout::SharingRanks sharing{
      .tokens = kSequences * kContext, .tensor = ranks, .between = options.tokens, .sums = sums};
  const auto bytes = static_cast<int64_t>(c10::elementSize(options.numbers.type));
  for (const IsFrozen& is_frozen : {kTrainsAll, drawn_frozen(number)}) {
    const model::ModelGraph graph = model::with_frozen(model.graph, is_frozen);
    const layout::Listing listing = layout::listing_of(model.spec, graph, sharing);
    run_ranks(ranks, [&](Communicator& tensor) {
      const StageWork work = work_of({model.spec, graph}, options, is_frozen, tensor);
      EXPECT_EQ(work.pushes, trained_parameters(graph)) << model.spec.family << " " << number;
      if (ranks == 1) return;
      EXPECT_EQ(work.forward, listed(listing, bytes, Pass::Forward)) << model.spec.family << " " << number;
      EXPECT_EQ(work.backward, listed(listing, bytes, Pass::Backward)) << model.spec.family << " " << number;
    });
  }
}

TEST(OpRows, SayWhatBlocksPushAndReduce) {
  DrawnModels models;
  for (int i = 0; i < 20; ++i) {
    const int ranks = models.one_of({1, 2});
    ModelSpec model = models.draw(ranks);
    model.context = kContext;
    model.layers = kLayers;
    if (model.window > 0) model.window = 5;
    for (const layout::Sequence tokens : {layout::Sequence::Whole, layout::Sequence::Split}) {
      for (const Numbers& numbers : {Numbers{}, Numbers{at::kBFloat16}, Numbers{at::kBFloat16, 2}}) {
        expect_listed(model_of(model), ranks, {tokens, numbers}, i);
      }
    }
  }
}

// Layers whose attention and feed-forward layer read one norm and are added, as in PaLM.
Model with_parallel_branches() {
  Model model =
      model_of({.layers = kLayers, .heads = 4, .width = 16, .context = kContext, .vocab = 19, .vocab_multiple = 1});
  model::BlockBuilder block(model.spec, "btc");
  const int normed = block.norm(model::OpKind::LayerNorm, "ln_1").value();
  const int attended =
      block.linear("attention.qkv", "[kmd|kd|kd]").attention().linear("attention.projection", "c").value();
  block.from(normed).linear("mlp.up", "f").bias().apply(model::OpKind::Gelu).linear("mlp.down", "c");
  model.graph.kinds[1] = block.plus(attended).join().build();
  return model;
}

TEST(OpRows, BranchesInParallelShareSumsThatHaveNoParts) {
  const Model model = with_parallel_branches();
  for (const layout::Sequence tokens : {layout::Sequence::Whole, layout::Sequence::Split}) {
    for (const int parts : {0, 2}) expect_listed(model, 2, {tokens, {at::kBFloat16, parts}}, 1);
  }
  run_ranks(2, [&](Communicator& tensor) {
    const auto calls = [&](int parts) {
      return work_of(model, {layout::Sequence::Whole, {at::kBFloat16, parts}}, kTrainsAll, tensor)
          .backward[Kind::AllReduce]
          .calls;
    };
    EXPECT_EQ(calls(0), kLayers);
    EXPECT_EQ(calls(2), 2 * kLayers);
  });
}

// Korthikanti et al. 2022, section 4.2.2: a layer has four all-gathers and four reduce-scatters of the hidden state, as
// much as four all-reduces, and two further gathers in backward.
TEST(OpRows, SequenceParallelLayersSendWhatMegatronsDo) {
  ModelSpec model{.layers = kLayers, .heads = 4, .width = 16, .context = kContext, .vocab = 19, .vocab_multiple = 1};
  for (const ModelFamily family : {ModelFamily::Gpt2, ModelFamily::Llama, ModelFamily::Bert, ModelFamily::Gemma2}) {
    model.family = family;
    run_ranks(2, [&](Communicator& tensor) {
      StageWork work = work_of(model_of(model), {layout::Sequence::Split}, kTrainsAll, tensor);
      const int64_t hidden = kSequences * kContext * model.width;
      const auto expect = [&](Collectives& sums, Kind kind, int64_t calls) {
        EXPECT_EQ(sums[kind], (Sums{calls, calls * hidden, calls * hidden * kFloatBytes}))
            << family << " " << word(kind);
      };
      expect(work.forward, Kind::AllReduce, 0);
      expect(work.forward, Kind::AllGather, 2 * kLayers);
      expect(work.forward, Kind::ReduceScatter, 2 * kLayers + 1);  // and the embedding's
      expect(work.backward, Kind::AllReduce, 0);
      expect(work.backward, Kind::AllGather, 4 * kLayers + 1);
      expect(work.backward, Kind::ReduceScatter, 2 * kLayers);
    });
  }
}

}  // namespace
}  // namespace braid::nn::op_rows_test
