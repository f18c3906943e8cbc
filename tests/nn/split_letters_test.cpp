// The column `whole` of the op table against numbers: an op on parts of a letter gives the parts of its output, or
// parts of a sum if the output lacks the letter, exactly for letters that ranks may split.
#include <ATen/ops/cat.h>

#include "braid/layout/parameters.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/op_table.h"
#include "braid/nn/lower.h"
#include "tests/nn/rank_world.h"

namespace braid::nn::split_letters_test {
namespace {

using model::BlockBuilder;
using model::OpKind;

constexpr int kSequences = 12, kTokens = 12;

struct Sizes {
  ModelSpec spec;
  int sequences = kSequences, tokens = kTokens;

  model::Extents extents() const { return model::extents_of(spec, sequences, tokens); }
};

// Every extent is divisible by 2, 3 and 4.
Sizes whole_sizes() {
  ModelSpec spec{.family = ModelFamily::Llama, .layers = 1};
  spec.kv_heads = 12, spec.heads = 12 * 12, spec.head_width = 24, spec.width = 12, spec.ffn = 12;
  spec.context = 48, spec.vocab = 12, spec.vocab_multiple = 1, spec.dropout = 0.5;
  return {spec};
}

Sizes divided(Sizes sizes, char letter, int parts) {
  ModelSpec& spec = sizes.spec;
  if (letter == 'b') sizes.sequences /= parts;
  if (letter == 't') sizes.tokens /= parts;
  if (letter == 'c') spec.width /= parts;
  if (letter == 'k') spec.kv_heads /= parts;
  if (letter == 'k' || letter == 'm') spec.heads /= parts;
  if (letter == 'd') spec.head_width /= parts;
  if (letter == 'f') spec.ffn /= parts;
  if (letter == 'p') spec.context /= parts;
  return sizes;
}

// Returns part `part` of `parts` of a letter in a tensor of these dims.
at::Tensor part_of(at::Tensor x, const model::Dims& dims, const model::Extents& extents, char letter,
                   const mesh::Share& share) {
  for (int64_t dim = 0; dim < std::ssize(dims); ++dim) {
    std::vector<at::Tensor> segments;
    int64_t begin = 0;
    for (const std::string& letters : dims[dim].segments) {
      std::vector<int64_t> sizes;
      for (const char each : letters) sizes.push_back(static_cast<int64_t>(extents[each]));
      const auto extent = static_cast<int64_t>(extents.of(letters));
      at::Tensor segment = x.narrow(dim, begin, extent).unflatten(dim, sizes);
      if (const size_t at = letters.find(letter); at != std::string::npos) {
        segment = segment.chunk(share.parts, dim + static_cast<int64_t>(at))[share.part];
      }
      segments.push_back(segment.flatten(dim, dim + static_cast<int64_t>(letters.size()) - 1));
      begin += extent;
    }
    x = at::cat(segments, dim);
  }
  return x.contiguous();
}

using Ops = std::function<model::BlockGraph(const ModelSpec&)>;

// Runs the ops on part `share.part` of the letter; on all of it if there is one part.
at::Tensor output(const Ops& ops, char letter, const mesh::Share& share, Communicator& alone) {
  const Sizes whole = whole_sizes(), own = divided(whole, letter, share.parts);
  const model::ModelGraph graph{{ops(own.spec)}, {0}};
  const model::BlockGraph& block = graph.block(0);
  RankWorld world(layout::model_params(own.spec, graph, {0, 1, mesh::Axis::Tensor}), alone);
  const at::NoGradGuard no_grad;
  for (const model::Op& op : block.ops) {
    for (const model::Param& param : op.params) {
      const at::Tensor all = formula_parameter(param.name, whole.extents().shape(param.dims));
      world.store[param.name].data.copy_(part_of(all, param.dims, whole.extents(), letter, share));
    }
  }
  Microbatch m;
  at::Tensor x;
  const model::Dims& in = block.values[0];
  if (in.size() == 2) {
    m.tokens_bt = part_of(formula_integers("tokens", {kSequences, kTokens}, 12), in, whole.extents(), letter, share);
  } else {
    x = part_of(formula_tensor("x", whole.extents().shape(in)), in, whole.extents(), letter, share);
  }
  return lower(own.spec, graph, {0}, world.store, world.context)->forward(x, m);
}

// Returns true if parts of the letter give parts of the output, or of a sum.
bool can_split(const Ops& ops, char letter, int parts, Communicator& alone) {
  const at::Tensor all = output(ops, letter, {0, 1}, alone);
  const model::BlockGraph block = ops(whole_sizes().spec);
  const model::Dims& out = block.values.back();
  const bool is_sum = model::text_of(out).find(letter) == std::string::npos;
  at::Tensor sum = at::zeros_like(all);
  for (int part = 0; part < parts; ++part) {
    const at::Tensor own = output(ops, letter, {part, parts}, alone);
    if (is_sum) {
      sum.add_(own);
    } else if (relative_error(own, part_of(all, out, whole_sizes().extents(), letter, {part, parts})) > 1e-12) {
      return false;
    }
  }
  return !is_sum || relative_error(sum, all) < 1e-12;
}

struct Case {
  const char* letters;  // that are tried
  Ops ops;
};

std::vector<Case> cases() {
  const auto one = [](const char* in, auto add) {
    return [=](const ModelSpec& spec) {
      BlockBuilder block(spec, in);
      add(block);
      return block.build();
    };
  };
  return {
      {"btc", one("bt", [](BlockBuilder& b) { b.lookup("wte"); })},
      {"btcp", one("btc", [](BlockBuilder& b) { b.positions("wpe"); })},
      {"btc", one("btc", [](BlockBuilder& b) { b.dropout(); })},
      {"btc", one("btc", [](BlockBuilder& b) { b.norm(OpKind::LayerNorm, "n"); })},
      {"btf", one("btf", [](BlockBuilder& b) { b.norm(OpKind::RmsNorm, "n"); })},
      {"btkmd", one("bt[kmd|kd|kd]", [](BlockBuilder& b) { b.head_norms("n"); })},
      {"btcf", one("btc", [](BlockBuilder& b) { b.linear("up", "f"); })},
      {"btckmd", one("btc", [](BlockBuilder& b) { b.linear("qkv", "[kmd|kd|kd]"); })},
      {"btfc", one("btf", [](BlockBuilder& b) { b.linear("down", "c"); })},
      {"btf", one("btc", [](BlockBuilder& b) { b.linear("up", "f").bias().apply(OpKind::Gelu); })},
      {"btkmd", one("bt[kmd|kd|kd]", [](BlockBuilder& b) { b.apply(OpKind::Rotary); })},
      {"btkmd", one("bt[kmd|kd|kd]", [](BlockBuilder& b) { b.attention(); })},
      {"btf", one("bt[f|f]", [](BlockBuilder& b) { b.swiglu(); })},
      {"btc", one("btc", [](BlockBuilder& b) { b.join(); })},
  };
}

TEST(SplitLetters, AreThoseThatTheOpTableAllows) {
  run_ranks(1, [](Communicator& alone) {
    for (const Case& c : cases()) {
      const model::BlockGraph block = c.ops(whole_sizes().spec);
      for (const char letter : std::string(c.letters)) {
        const bool allowed = model::problems_of_split(block, std::string(1, letter)).empty();
        for (const int parts : {2, 3, 4}) {
          EXPECT_EQ(can_split(c.ops, letter, parts, alone), allowed)
              << model::text_of(block) << letter << " in " << parts << " parts";
        }
      }
    }
  });
}

}  // namespace
}  // namespace braid::nn::split_letters_test
