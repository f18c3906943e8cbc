// How texts are batched: what each forward reads, and how much room the cache has. The model is a fake that always
// predicts 'z'.
#include "braid/train/text_batch.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "braid/nn/key_value_cache.h"

namespace braid::train::text_batch_test {
namespace {

constexpr int64_t kContext = 24, kVocab = 257;

struct Batches {
  std::vector<std::vector<int64_t>> read;  // of each forward, how many tokens of each text
  int64_t room = 0;                        // of the cache, in tokens
};

Batches batches(const std::vector<std::string>& prompts, const GenerateOptions& options) {
  Batches seen;
  const auto forward = [&](const nn::Microbatch& microbatch) {
    std::vector<int64_t> counts;
    for (const auto& [sequence, count] : microbatch.cache->stretches()) counts.push_back(count);
    at::Tensor scores_sv = at::zeros({std::ssize(counts), 1, kVocab});
    scores_sv.select(2, 'z').fill_(1);
    seen.read.push_back(std::move(counts));
    seen.room = microbatch.cache->context();
    return scores_sv;
  };
  const TextBatch::Model model{forward, kContext, kVocab};
  const auto tokenizer = tokenize::make_tokenizer("bytes");
  const Generation made = TextBatch(model, *tokenizer, options).run(prompts, {});
  for (const GeneratedText& text : made.texts) {
    EXPECT_EQ(text.text, std::string(static_cast<size_t>(options.num_tokens), 'z'));
  }
  return seen;
}

using Counts = std::vector<std::vector<int64_t>>;

TEST(TextBatch, PromptsAreReadInOneForward) {
  const GenerateOptions options{.num_tokens = 2, .temperature = 0};
  EXPECT_EQ(batches({"a", "bcd", "", "ef", "g", "hi", "j", "k"}, options).read,
            (Counts{{1, 3, 1, 2, 1, 2, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}}));
}

TEST(TextBatch, PromptsThatTakeFreePlacesAreReadTogether) {
  const GenerateOptions options{.num_tokens = 2, .temperature = 0, .batch = 2};
  EXPECT_EQ(batches({"a", "bcd", "ef", "ghi"}, options).read, (Counts{{1, 3}, {1, 1}, {2, 3}, {1, 1}}));
}

TEST(TextBatch, AForwardReadsAtMostAContextOfTokens) {
  const GenerateOptions options{.num_tokens = 1, .temperature = 0};
  const auto text = [](size_t size) { return std::string(size, 'a'); };
  EXPECT_EQ(batches({text(10), text(14), text(1), text(40), text(2)}, options).read,
            (Counts{{10, 14}, {1}, {24}, {2}}));
}

TEST(TextBatch, ThePromptOfSeveralTextsIsReadOnce) {
  const GenerateOptions options{.num_tokens = 1, .temperature = 0, .num_samples = 3};
  EXPECT_EQ(batches({"ab", "c"}, options).read, (Counts{{2, 1}}));
}

TEST(TextBatch, TheCacheHasRoomForTheLongestText) {
  EXPECT_EQ(batches({"", "abc"}, {.num_tokens = 5, .temperature = 0}).room, 7);  // the last token is not read
  EXPECT_EQ(batches({""}, {.num_tokens = 1, .temperature = 0}).room, 1);
  EXPECT_EQ(batches({"abc"}, {.num_tokens = 100, .temperature = 0}).room, kContext);
}

}  // namespace
}  // namespace braid::train::text_batch_test
