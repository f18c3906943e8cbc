// The braid command with a model family of this program's own: PaLM, whose attention and feed-forward layers read one
// norm and are added together. So tensor ranks sum both at once. Source: Chowdhery et al., "PaLM" (2022), section 2.
//
//   x ---- norm ---+--- qkv --- rotary --- attention --- projection ---(+)--- dropout ---(+)---
//     \             \-- gate_up --- swiglu --- down ------------------/                  /
//      \--------------------------------------------------------------------------------/
//
//   build/release/bin/example_palm train model.family=palm data.paths=FILE [KEY=VALUE ...]
#include "braid/cli/run_command.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"

namespace {

using braid::ModelSpec;
using braid::model::BlockBuilder;
using braid::model::BlockGraph;
using braid::model::OpKind;

BlockGraph embedding(const ModelSpec& spec) { return BlockBuilder(spec, "bt").lookup("wte").dropout().build(); }

BlockGraph layer(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  const int normed = block.norm(OpKind::LayerNorm, "norm").value();
  block.linear("attention.qkv", "[kmd|kd|kd]").apply(OpKind::Rotary).attention();
  const int attended = block.linear("attention.projection", "c").value();
  block.from(normed).linear("mlp.gate_up", "[f|f]").swiglu().linear("mlp.down", "c");
  return block.plus(attended).dropout().join().build();
}

BlockGraph head(const ModelSpec& spec) {
  return BlockBuilder(spec, "btc").norm(OpKind::LayerNorm, "norm_f").loss(braid::model::head_table(spec)).build();
}

braid::model::Family palm() {
  using namespace braid::model;  // NOLINT
  return {.name = "palm",
          .traits = {FeedForward::Gated, KeyHeads::Shared, PositionKind::Rotary, HeadForm::Free, 1},
          .ffn_width = [](const ModelSpec& spec) { return 4 * spec.width; },
          .blocks = {embedding, layer, head}};
}

}  // namespace

int main(int argc, char** argv) {
  braid::model::add_family(palm());
  braid::cli::run_command(argc, argv);
}
