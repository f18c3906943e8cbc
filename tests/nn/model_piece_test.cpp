// A model cut between the branches of its blocks: the same bits, the same parameters.
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/layout/parameters.h"
#include "braid/nn/model.h"
#include "tests/nn/model_run.h"

namespace braid::nn::model_piece_test {
namespace {

using Pieces = std::vector<ModelPiece>;

constexpr int kLast = ModelPiece::kLast;
constexpr ModelPiece attention_of(int block) { return {block, 0, 1}; }
constexpr ModelPiece mlp_of(int block) { return {block, 1, kLast}; }

TEST(ModelPiece, AllPartsOfABlockAreOnePiece) {
  const ModelSpec spec = tiny_gpt2();  // two layers
  EXPECT_EQ(pieces_of(spec, 0, 6), (Pieces{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(pieces_of(spec, 0, 2), (Pieces{{0}, attention_of(1)}));
  EXPECT_EQ(pieces_of(spec, 2, 4), (Pieces{mlp_of(1), attention_of(2)}));
  EXPECT_EQ(pieces_of(spec, 4, 6), (Pieces{mlp_of(2), {3}}));
  EXPECT_EQ(pieces_of(spec, 5, 6), (Pieces{{3}}));
  EXPECT_EQ(pieces_of(spec, 1, 5), (Pieces{{1}, {2}}));
  EXPECT_THROW(pieces_of(spec, 4, 7), InternalError);
}

std::vector<std::string> names(const layout::BlockSpec& block) {
  std::vector<std::string> all;
  for (const layout::ParamSpec& param : block.params) all.push_back(param.name);
  return all;
}

TEST(ModelPiece, HalvesShareOutTheParametersOfABlock) {
  for (const ModelSpec& spec : {tiny_gpt2(), tiny_llama()}) {
    const layout::ModelParams params = layout::model_params(spec, 0, 1);
    const auto whole = names(params_of({2}, params));
    auto first = names(params_of(attention_of(2), params));
    const auto second = names(params_of(mlp_of(2), params));
    for (const auto& name : first) {
      EXPECT_TRUE(name.starts_with("blocks.1.attention.") || name.find("_1.") != std::string::npos) << name;
    }
    for (const auto& name : second) {
      EXPECT_TRUE(name.starts_with("blocks.1.mlp.") || name.find("_2.") != std::string::npos) << name;
    }
    first.insert(first.end(), second.begin(), second.end());
    EXPECT_EQ(first, whole);
    EXPECT_THROW(params_of(mlp_of(0), params), InternalError);
  }
}

// Whatever they are called.
TEST(ModelPiece, ParametersSayWhichHalfTheyBelongTo) {
  const auto param = [](const char* name, int part) {
    layout::ParamSpec spec;
    spec.name = name, spec.part = part;
    return spec;
  };
  const layout::BlockSpec block{"blocks.0", {param("a", 1), param("b", 0)}};
  const layout::ModelParams params{{"embedding", {}}, block, {"head", {}}};
  EXPECT_EQ(names(params_of(attention_of(1), params)), std::vector<std::string>{"b"});
  EXPECT_EQ(names(params_of(mlp_of(1), params)), std::vector<std::string>{"a"});
}

// Enough rows that their sums are made in several blocks.
TEST(ModelPiece, HalvesGiveTheBitsOfWholeBlocks) {
  for (const auto& spec : {tiny_gpt2(), tiny_llama()}) {
    for (const double dropout : {0.0, 0.2}) {
      for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
        for (const int ranks : {1, 3}) {
          SCOPED_TRACE(cat(spec.family, " dropout ", dropout, " ", at::toString(dtype), " ranks ", ranks));
          ModelRun run{spec, ranks, dtype, 2, 25};
          run.spec.dropout = dropout;
          const auto whole = model_step(run);
          run.cut = Cut::HalfBlocks;
          const auto halves = model_step(run);
          ASSERT_EQ(whole.size(), halves.size());
          for (const auto& [name, tensor] : whole) EXPECT_TRUE(tensor.equal(halves.at(name))) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::nn::model_piece_test
