// Samples are a pure function of (seed, index), every epoch visits every window once, and every mesh reads the same.
#include "braid/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "braid/base/errors.h"
#include "braid/data/permutation.h"
#include "tests/support/sample_stream.h"

namespace braid::data::sampler_test {
namespace {

constexpr int kContext = 7;  // of most samplers here

Tokens in_memory(const std::vector<int>& tokens) {
  auto memory = std::make_shared<MemoryTokens>(1 << 20);
  memory->add_document(tokens);
  return memory;
}

std::vector<int> counting(int n, int first = 0) {
  std::vector<int> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

Sampler sampler_of(const std::vector<int>& tokens, int context, uint64_t seed) {
  return Sampler({{in_memory(tokens), 1}}, context, seed);
}

std::vector<int64_t> sample(const Sampler& sampler, int64_t index, int context = kContext) {
  std::vector<int64_t> tokens(static_cast<size_t>(context) + 1);
  sampler.read(index, tokens);
  return tokens;
}

std::vector<int64_t> epoch_order(const Sampler& sampler, int64_t epoch, int context) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < sampler.windows_per_epoch(); ++i) {
    order.push_back(sample(sampler, epoch * sampler.windows_per_epoch() + i, context)[0] / context);
  }
  return order;
}

TEST(Permutation, VisitsEachPlaceOnce) {
  for (int64_t size = 1; size <= 300; ++size) {
    for (uint64_t key : {0u, 1u, 77u}) {
      const Permutation permutation(size, key);
      std::vector<bool> seen(static_cast<size_t>(size), false);
      for (int64_t place = 0; place < size; ++place) {
        const int64_t to = permutation(place);
        ASSERT_TRUE(to >= 0 && to < size && !seen[static_cast<size_t>(to)]) << size << " " << place;
        seen[static_cast<size_t>(to)] = true;
      }
    }
  }
}

TEST(Permutation, LooksUniform) {
  // Where place 0 goes under many keys: chi-squared over 16 values, 15 degrees of freedom, far beyond the 99.99 %
  // point.
  std::vector<int> count(16, 0);
  constexpr int kKeys = 16000;
  for (uint64_t key = 0; key < kKeys; ++key) ++count[static_cast<size_t>(Permutation(16, key)(0))];
  double chi = 0;
  for (const int n : count) chi += (n - kKeys / 16.0) * (n - kKeys / 16.0) / (kKeys / 16.0);
  EXPECT_LT(chi, 60);
}

TEST(Permutation, RefusesPlacesOutside) {
  EXPECT_THROW(Permutation(5, 0)(5), InternalError);
  EXPECT_THROW(Permutation(5, 0)(-1), InternalError);
  EXPECT_THROW(Permutation(0, 0), InternalError);
}

TEST(Sampler, WindowsOverlapByOneToken) {
  const Sampler sampler = sampler_of(counting(13), 4, 1);  // three windows of 4 + 1, and nothing is left over
  ASSERT_EQ(sampler.windows_per_epoch(), 3);
  std::set<std::vector<int64_t>> windows;
  for (int64_t i = 0; i < 3; ++i) windows.insert(sample(sampler, i, 4));
  EXPECT_EQ(windows, (std::set<std::vector<int64_t>>{{0, 1, 2, 3, 4}, {4, 5, 6, 7, 8}, {8, 9, 10, 11, 12}}));
}

TEST(Sampler, EachEpochVisitsEachWindowOnceInANewOrder) {
  const int context = 3;
  const Sampler sampler = sampler_of(counting(3 * 101 + 1), context, 5);
  ASSERT_EQ(sampler.windows_per_epoch(), 101);
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    auto order = epoch_order(sampler, epoch, context);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 101; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(Sampler, IsAPureFunctionOfSeedAndIndex) {
  const auto tokens = counting(2000);
  const Sampler sampler = sampler_of(tokens, kContext, 11), again = sampler_of(tokens, kContext, 11),
                other = sampler_of(tokens, kContext, 12);
  int differ = 0;
  for (int64_t index = 5000; index >= 0; index -= 37) {
    EXPECT_EQ(sample(sampler, index), sample(again, index));
    differ += sample(sampler, index) != sample(other, index);
  }
  EXPECT_GT(differ, 120);
}

uint64_t sum_of_hashes(const Sampler& sampler, int64_t first, int64_t count) {
  uint64_t sum = 0;
  for (int64_t index = first; index < first + count; ++index) sum += sample_hash(index, sample(sampler, index));
  return sum;
}

TEST(Sampler, SumsOfHashesSayWhichSamplesAtWhichPlaces) {
  const auto tokens = counting(2000);
  const Sampler sampler = sampler_of(tokens, kContext, 11), other = sampler_of(tokens, kContext, 12);
  EXPECT_EQ(sum_of_hashes(sampler, 40, 8), sum_of_hashes(sampler_of(tokens, kContext, 11), 40, 8));
  EXPECT_NE(sum_of_hashes(sampler, 40, 8), sum_of_hashes(other, 40, 8));
  std::set<uint64_t> hashes;
  for (int64_t first = 0; first < 50; ++first) {
    for (int64_t count = 0; count < 20; ++count) {
      if (count > 0 || first == 0) hashes.insert(sum_of_hashes(sampler, first, count));
    }
  }
  EXPECT_EQ(hashes.size(), 50u * 19 + 1);

  auto changed = tokens;
  changed[1234] ^= 1;
  const auto n = sampler.windows_per_epoch();
  EXPECT_NE(sum_of_hashes(sampler, 0, n), sum_of_hashes(sampler_of(changed, kContext, 11), 0, n));
}

TEST(Sampler, TwoSamplesThatChangePlacesAreAnotherSum) {
  const std::vector<int64_t> a{1, 2, 3}, b{3, 2, 1};
  EXPECT_NE(sample_hash(0, a) + sample_hash(1, b), sample_hash(0, b) + sample_hash(1, a));
}

TEST(Sampler, APartOfASampleIsThatPart) {
  const Sampler sampler = sampler_of(counting(2000), kContext, 11);
  for (int64_t index = 0; index < 300; ++index) {
    const auto whole = sample(sampler, index);
    for (size_t first = 0; first < whole.size(); ++first) {
      std::vector<int64_t> part(std::min<size_t>(3, whole.size() - first));
      sampler.read(index, part, static_cast<int64_t>(first));
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<int64_t>(first)));
    }
  }
  std::vector<int64_t> beyond(kContext + 1);
  EXPECT_THROW(sampler.read(0, beyond, 1), InternalError);
}

TEST(Sampler, RefusesTokensThatDoNotFillAWindow) {
  EXPECT_EQ(sampler_of(counting(8), 7, 1).windows_per_epoch(), 1);
  try {
    sampler_of(counting(8), 8, 1);
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems()[0].key, "model.context");
    EXPECT_EQ(error.problems()[0].nearest, "7");
  }
}

// The hashes that step lines of earlier versions printed for this corpus, seed and context.
TEST(Sampler, KeepsTheOrderOfEarlierVersions) {
  const Sampler sampler = sampler_of(counting(2000), kContext, 11);
  EXPECT_EQ(stream_hash(sampler, kContext, 0, 8), 0x9bb5cf9e6799a17du);
  EXPECT_EQ(stream_hash(sampler, kContext, 100000, 16), 0xbd6dc4047bce266eu);
}

TEST(Sampler, NumbersTheDocumentsOfASampleFromZero) {
  auto memory = std::make_shared<MemoryTokens>(10);
  for (const int length : {3, 1, 5, 8}) memory->add_document(std::vector<int>(static_cast<size_t>(length), 1), 9);
  const Sampler sampler({{memory, 1}}, 10, 1);  // 4 + 2 + 6 + 9 tokens: two windows
  ASSERT_EQ(sampler.windows_per_epoch(), 2);
  std::set<std::vector<int64_t>> seen;
  for (int64_t i = 0; i < 2; ++i) {
    std::vector<int64_t> documents(10);
    sampler.read_documents(i, documents);
    seen.insert(documents);
  }
  EXPECT_EQ(seen, (std::set<std::vector<int64_t>>{{0, 0, 0, 0, 1, 1, 2, 2, 2, 2}, {0, 0, 1, 1, 1, 1, 1, 1, 1, 1}}));
}

TEST(Sampler, PartsTakeTheirSharesAndNoneRepeatsWithinItsEpoch) {
  const std::vector<int> windows = {40, 300, 1100};
  const std::vector<double> weights = {1, 2, 5};
  Blend blend;
  for (int p = 0; p < 3; ++p) blend.push_back({in_memory(counting(windows[p] * kContext + 1, p * 100000)), weights[p]});
  const Sampler sampler(blend, kContext, 3);
  std::vector<std::vector<int64_t>> taken(3);  // the window of each sample, by part
  for (int64_t i = 0; i < 2 * Interleave::kRound; ++i) {
    const int64_t first = sample(sampler, i)[0];
    taken[static_cast<size_t>(first / 100000)].push_back(first % 100000 / kContext);
  }
  for (size_t p = 0; p < 3; ++p) {
    EXPECT_EQ(taken[p].size(), static_cast<size_t>(2 * Interleave::kRound * weights[p] / 8)) << p;
    const auto epoch = static_cast<size_t>(windows[p]);
    for (size_t begin = 0; begin + epoch <= taken[p].size(); begin += epoch) {
      const std::set<int64_t> seen(taken[p].begin() + begin, taken[p].begin() + begin + epoch);
      EXPECT_EQ(seen.size(), epoch) << p << " " << begin;
    }
  }
}

// The samples of a step in the order of its microbatches, for every way to divide the batch.
TEST(FirstSample, PartitionsTheStepInTheSameOrderForEveryMicrobatch) {
  for (const int batch : {1, 2, 6, 8, 12, 24}) {
    for (int microbatch = 1; microbatch <= batch; ++microbatch) {
      if (batch % microbatch != 0) continue;
      for (const int64_t step : {0, 1, 1000}) {
        std::vector<int64_t> samples;
        for (int micro = 0; micro < batch / microbatch; ++micro) {
          const int64_t first = first_sample({batch, microbatch}, step, micro);
          for (int i = 0; i < microbatch; ++i) samples.push_back(first + i);
        }
        std::vector<int64_t> expected(static_cast<size_t>(batch));
        std::iota(expected.begin(), expected.end(), step * batch);
        EXPECT_EQ(samples, expected) << batch << " " << microbatch;
      }
    }
  }
}

TEST(FirstSample, IsTheBlockOfTheDocumentation) {
  EXPECT_EQ(first_sample({8, 2}, 0, 3), 6);
  EXPECT_EQ(first_sample({8, 2}, 10, 1), 82);
  EXPECT_EQ(first_sample({8, 2}, int64_t{1} << 40, 0), int64_t{1} << 43);
  EXPECT_THROW(first_sample({8, 3}, 0, 0), InternalError);
  EXPECT_THROW(first_sample({8, 2}, 0, -1), InternalError);
  EXPECT_THROW(first_sample({8, 2}, 0, 4), InternalError);
}

}  // namespace
}  // namespace braid::data::sampler_test
