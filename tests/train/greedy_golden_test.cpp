// Greedy tokens are those that transformers chooses in float64 with its own cache, for every family, on one rank and on
// 2 pipe x 2 tensor ranks. The files record how much likelier than the second each token is: at least 7e-4, far above
// float32's rounding.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "braid/base/file_system.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/train/loaded_model.h"
#include "braid/train/text_batch.h"
#include "braid/weights/from_hf.h"
#include "tests/support/scratch_folder.h"
#include "tests/weights/hf_families.h"

namespace braid::train::greedy_golden_test {
namespace {

// Tokens as words: "9 23 17".
class Numbers final : public tokenize::Tokenizer {
 public:
  explicit Numbers(int vocab) : vocab_(vocab) {}
  int vocab() const override { return vocab_; }
  int end_of_text() const override { return vocab_; }
  void encode_append(std::string_view text, std::vector<uint32_t>& tokens) const override {
    std::istringstream words{std::string(text)};
    tokens.insert(tokens.end(), std::istream_iterator<uint32_t>(words), {});
  }
  std::string decode(const std::vector<int>& tokens) const override { return cat(tokens.at(0), " "); }

 private:
  const int vocab_;
};

class GreedyGolden : public ScratchFolder, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, GreedyGolden, testing::ValuesIn(causal_hf_families()),
                         [](const auto& info) { return info.param; });

TEST_P(GreedyGolden, TokensAreThoseOfTransformersWhateverElseIsInTheBatch) {
  std::ifstream file(cat(BRAID_SOURCE_DIR, "/tests/nn/data/", GetParam(), "_greedy.json"));
  const auto golden = nlohmann::json::parse(file);
  std::string prompt;
  for (const int token : golden["prompt"]) prompt += cat(token, " ");
  const auto want = golden["tokens"].get<std::vector<int>>();
  PosixFileSystem files;
  weights::checkpoint_from_hf({hf_family_folder(GetParam()), path("checkpoint")}, files);
  for (const int ranks : {1, 2}) {
    const ModelToLoad load = model_to_load(path("checkpoint"), {.pipe = ranks, .tensor = ranks});
    run_ranks(ranks * ranks, [&](Communicator& world) {
      const LoadedModel model(load, world);
      const TextBatch::Model computes{[&](nn::Microbatch microbatch) { return model.forward(std::move(microbatch)); },
                                      load.spec.model.context, load.spec.model.vocab};
      const Numbers tokenizer(load.spec.model.vocab);
      const GenerateOptions options{.num_tokens = static_cast<int>(want.size()), .temperature = 0};
      const Generation made = TextBatch(computes, tokenizer, options).run({"3 1", prompt, "5"}, {});
      EXPECT_EQ(made.texts.at(1).tokens, want) << "rank " << world.rank() << " of " << world.size();
    });
  }
}

}  // namespace
}  // namespace braid::train::greedy_golden_test
