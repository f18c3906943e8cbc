// The lists of parameters that are read from graphs.
#include "braid/layout/parameters.h"

#include <gtest/gtest.h>

#include <map>

#include "braid/base/digest.h"
#include "braid/base/text.h"
#include "braid/model/preset.h"
#include "tests/support/drawn_models.h"

namespace braid::layout::parameters_test {
namespace {

std::string text_of(const mesh::Index& index) {
  std::string text;
  for (const int64_t each : index) text += cat(each, " ");
  return text;
}

std::string text_of(const ParamSpec& param) {
  std::string text =
      cat(param.name, " use ", param.use, "/", param.uses, " init ", static_cast<int>(param.init.kind), " ",
          exact(param.init.std), " decay ", static_cast<int>(param.decay), " linear ", static_cast<int>(param.linear),
          " part ", param.name.starts_with("blocks.") ? param.part + 1 : 0, " of ");
  text += text_of(param.placement.global_shape) + "in " + text_of(param.placement.local_shape);
  for (const mesh::Piece& piece : param.placement.pieces) {
    text += cat("[", text_of(piece.global.begin), text_of(piece.global.end), "at ", text_of(piece.local_begin), "]");
  }
  return cat(text, param.placement.sharded.has(mesh::Axis::Tensor) ? " tensor" : "", "\n");
}

std::string text_of(const ModelParams& blocks) {
  std::string text;
  for (const BlockSpec& block : blocks) {
    text += block.name + "\n";
    for (const ParamSpec& param : block.params) text += text_of(param);
  }
  return text;
}

// The digest is that of the lists that gpt2_params() and llama_params() made before there were graphs.
TEST(Parameters, OfDrawnModelsAreThoseOfTheListsByHand) {
  DrawnModels models;
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    const int tensor = models.one_of({1, 2, 4, 8});
    const int rank = models.one_of({0, tensor / 2, tensor - 1});
    text += text_of(model_params(models.draw(tensor), rank, tensor));
  }
  EXPECT_EQ(hex(digest_of(DigestKind::Xxh64, text)), "6521d68bbca6acc4");
}

// Sums of what the published checkpoints hold.
TEST(Parameters, OfPresetsAreAsManyAsPublished) {
  const std::map<std::string, int64_t> published = {
      {"gpt2-124m", 124439808}, {"gpt2-350m", 354823168}, {"gpt2-774m", 774030080}, {"gpt2-1.5b", 1557611200},
      {"llama-1b", 1235814400}, {"llama-3b", 3212749824}, {"llama-8b", 8030261248}, {"tinyllama-1.1b", 1100048384}};
  size_t seen = 0;
  for (const auto& preset : model::presets()) {
    if (!published.contains(preset.name)) continue;
    EXPECT_EQ(count_params(preset.model), published.at(preset.name)) << preset.name;
    ++seen;
  }
  EXPECT_EQ(seen, published.size());
}

}  // namespace
}  // namespace braid::layout::parameters_test
