// The choice of masked tokens: how many, which, and what they become.
#include "braid/data/masked_sequences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace braid::data::masked_sequences_test {
namespace {

constexpr int64_t kPadding = 0, kBegin = 1, kEnd = 2, kMask = 3, kFirstWord = 4, kVocab = 1000;

MaskTokens mask_tokens() {
  MaskTokens tokens{kMask, kBegin, kEnd, kPadding, {}};
  for (int64_t id = kFirstWord; id < kVocab; ++id) tokens.ordinary.push_back(id);
  return tokens;
}

// Documents of 1 to 40 words, each with its end.
Blend blend_of_documents(int count) {
  const auto tokens = std::make_shared<MemoryTokens>(kVocab);
  int word = 0;
  for (int document = 0; document < count; ++document) {
    std::vector<int> words;
    for (int i = 0; i <= document % 40; ++i) words.push_back(static_cast<int>(kFirstWord) + word++ % 996);
    tokens->add_document(words, static_cast<int>(kEnd));
  }
  return {{tokens, 1}};
}

TEST(MaskedSequences, EverySequenceHasAsManyMasksOfItsWords) {
  const MaskedSampler sampler(blend_of_documents(400), {32, 5}, mask_tokens(), 7);
  for (int64_t i = 0; i < 200; ++i) {
    const MaskedSequence one = sampler.read(i);
    ASSERT_EQ(one.tokens.size(), 32u);
    ASSERT_EQ(one.rows.size(), 5u);
    EXPECT_EQ(one.tokens.front(), kBegin);
    EXPECT_EQ(one.tokens.back(), kEnd);
    EXPECT_TRUE(std::ranges::is_sorted(one.rows));
    EXPECT_EQ(std::ranges::adjacent_find(one.rows), one.rows.end());
    for (const int64_t target : one.targets) EXPECT_GE(target, kFirstWord) << "special tokens are never chosen";
    EXPECT_EQ(std::ranges::count(one.tokens, kPadding), 0);
  }
}

TEST(MaskedSequences, EightyPercentBecomeTheMaskTenARandomTokenTenStay) {
  const MaskedSampler sampler(blend_of_documents(400), {32, 5}, mask_tokens(), 7);
  int masks = 0, same = 0, all = 0;
  std::map<int64_t, int> places;
  for (int64_t i = 0; i < 4000; ++i) {
    const MaskedSequence one = sampler.read(i);
    for (size_t k = 0; k < one.rows.size(); ++k) {
      const int64_t token = one.tokens[one.rows[k]];
      masks += token == kMask, same += token == one.targets[k], ++all;
      ++places[one.rows[k]];
      EXPECT_NE(token, kEnd);
    }
  }
  EXPECT_NEAR(masks / static_cast<double>(all), 0.8, 0.01);  // 3.5 standard deviations
  EXPECT_NEAR(same / static_cast<double>(all), 0.1, 0.008);
  EXPECT_EQ(places.size(), 30u) << "all places but the first and the last";
  for (const auto& [place, count] : places) EXPECT_NEAR(count / 4000.0, 5 / 30.0, 0.05) << place;
}

TEST(MaskedSequences, ASampleIsAPureFunctionOfItsIndexAndEachEpochChoosesAnew) {
  const Blend blend = blend_of_documents(400);
  const MaskedSampler one(blend, {32, 5}, mask_tokens(), 7), two(blend, {32, 5}, mask_tokens(), 7);
  EXPECT_EQ(two.read(50).tokens, one.read(50).tokens);
  EXPECT_EQ(two.read(50).rows, one.read(50).rows);
  const MaskedSampler short_blend(blend_of_documents(7), {32, 5}, mask_tokens(), 7);  // one window
  EXPECT_NE(short_blend.read(0).rows, short_blend.read(1).rows);
}

// A document of 5 words has one mask of six words, as a document of 30 has.
TEST(MaskedSequences, ShortDocumentsHaveTheSameShareOfMasks) {
  const MaskedSampler sampler(blend_of_documents(400), {64, 10, Cut::Documents, 1.0 / 6}, mask_tokens(), 7);
  int64_t all = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const MaskedSequence one = sampler.read(i);
    const int64_t words = std::ranges::count(one.documents, 0) - 2;
    const auto masks = std::ssize(one.targets) - std::ranges::count(one.targets, -1);
    EXPECT_EQ(masks, std::max(1l, std::lround(static_cast<double>(words) / 6))) << words << " words";
    all += masks;
  }
  EXPECT_EQ(sampler.num_targets(0, 200), all);
}

TEST(MaskedSequences, DocumentsArePaddedAndCoveredOnce) {
  const MaskedSampler sampler(blend_of_documents(40), {32, 5, Cut::Documents}, mask_tokens(), 7);
  // Documents of 1 .. 40 words: those above 30 are cut in two.
  std::vector<int64_t> lengths;
  int64_t targets = 0;
  for (int64_t i = 0; i < 50; ++i) {
    const MaskedSequence one = sampler.read(i);
    const int64_t padding = std::ranges::count(one.tokens, kPadding);
    const int64_t words = 30 - padding;
    lengths.push_back(words);
    EXPECT_EQ(one.tokens[words + 1], kEnd);
    const int64_t chosen = 5 - std::ranges::count(one.targets, -1);
    EXPECT_EQ(chosen, std::min<int64_t>(5, words));
    targets += chosen;
    for (int64_t place = 0; place < 32; ++place) EXPECT_EQ(one.documents[place], place < words + 2 ? 0 : 1);
  }
  EXPECT_EQ(sampler.num_targets(0, 50), targets);
  EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), 40 * 41 / 2);
}

}  // namespace
}  // namespace braid::data::masked_sequences_test
