// The bigram bar: by hand, on large parts, with weights.
#include "braid/data/corpus.h"

#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/seeds.h"

namespace braid::data::corpus_test {
namespace {

Tokens in_memory(const std::vector<int>& tokens, int64_t vocab) {
  auto memory = std::make_shared<MemoryTokens>(vocab);
  memory->add_document(tokens);
  return memory;
}

TEST(BigramEntropy, ByHand) {
  // After 0: twice 1, once 2. After 1: twice 0. After 2: nothing.
  const Corpus corpus{{{in_memory({0, 1, 0, 1, 0, 2}, 3), 1}}, {{in_memory({0, 1, 2, 2}, 3), 1}}, 1};
  const double expected = -(std::log(3 / 6.0) + std::log(1 / 5.0) + std::log(1 / 3.0)) / 3;
  EXPECT_NEAR(bigram_entropy(corpus, 3), expected, 1e-12);
  EXPECT_TRUE(std::isnan(bigram_entropy({{{in_memory({0, 1}, 3), 1}}, {}, 1}, 3)));
}

TEST(BigramEntropy, PartsCountByTheirWeights) {
  // A part of ones and a part of twos: 3 to 1 in what is learned (6 pairs of each part would be 9 and 3), equal in what
  // is measured.
  const auto ones = in_memory(std::vector<int>(7, 1), 4), twos = in_memory(std::vector<int>(7, 2), 4);
  const Corpus corpus{{{ones, 3}, {twos, 1}}, {{ones, 2}, {twos, 2}}, 2};
  const double expected = -(std::log((9 + 1) / (9.0 + 4)) + std::log((3 + 1) / (3.0 + 4))) / 2;
  EXPECT_NEAR(bigram_entropy(corpus, 4), expected, 1e-12);
}

TEST(BigramEntropy, OfALargePartRunsFromAllOfItAreCounted) {
  // Each quarter has a token of its own, so a bar that saw only the first quarter would be near log(vocab).
  constexpr int kTokens = 20'000'000;
  class Quarters final : public TokenSource {
   public:
    int64_t num_tokens() const override { return kTokens; }
    int64_t num_documents() const override { return 1; }
    void read(int64_t begin, std::span<int64_t> out) const override {
      for (size_t i = 0; i < out.size(); ++i) out[i] = 1000 * ((begin + static_cast<int64_t>(i)) * 4 / kTokens);
      read_ += static_cast<int64_t>(out.size());
    }
    void read_documents(int64_t, std::span<int64_t>) const override {}
    mutable int64_t read_ = 0;
  };
  const auto tokens = std::make_shared<Quarters>();
  const double nats = bigram_entropy({{{tokens, 1}}, {{tokens, 1}}, 1}, 128'000);
  EXPECT_LT(nats, 0.05);
  EXPECT_LT(tokens->read_, (1 << 24) + 3 * (1 << 20));
}

}  // namespace
}  // namespace braid::data::corpus_test
