// The guarantees of batches, on random lengths: every sample once, padding and size within bounds, ranks alike.
#include "braid/data/length_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"

namespace braid::data::length_buckets_test {
namespace {

// Lengths as of sentences: log-normal in spirit, between 1 and 200.
std::vector<int64_t> random_lengths(uint64_t seed, int64_t count) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) {
    const double u = uniform(seed, static_cast<uint64_t>(2 * i)) + uniform(seed, static_cast<uint64_t>(2 * i + 1));
    lengths.push_back(static_cast<int64_t>(std::exp(u * std::log(200.0) / 2)));
  }
  return lengths;
}

struct Case {
  int64_t num_samples, max_tokens;
  double max_padding;
  int num_ranks;
};

std::vector<Case> random_cases() {
  std::vector<Case> cases;
  for (uint64_t i = 0; i < 120; ++i) {
    const auto draw = [&](uint64_t k, uint64_t below) { return static_cast<int64_t>(random_bits(i, k) % below); };
    cases.push_back({1 + draw(0, i % 3 == 0 ? 12 : 900), 200 + draw(1, 2000), 0.01 * static_cast<double>(draw(2, 60)),
                     static_cast<int>(1 + draw(3, 8))});
  }
  return cases;
}

LengthBuckets buckets_of(const Case& c, const std::vector<int64_t>& lengths, uint64_t seed = 3) {
  return {lengths, {c.max_tokens, c.max_padding, seed}, c.num_ranks};
}

// The batches of an epoch, rank by rank within a step.
std::vector<LengthBatch> epoch_of(const LengthBuckets& buckets, int64_t epoch, int num_ranks) {
  std::vector<LengthBatch> batches;
  const int64_t steps = buckets.steps_per_epoch();
  for (int64_t step = epoch * steps; step < (epoch + 1) * steps; ++step) {
    for (int rank = 0; rank < num_ranks; ++rank) batches.push_back(buckets.batch(step, rank));
  }
  return batches;
}

TEST(LengthBuckets, EverySampleComesOncePerEpoch) {
  for (const Case& c : random_cases()) {
    const auto buckets = buckets_of(c, random_lengths(1, c.num_samples));
    for (const int64_t epoch : {0, 1, 5}) {
      std::vector<int64_t> seen;
      for (const auto& batch : epoch_of(buckets, epoch, c.num_ranks)) {
        seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
      }
      std::sort(seen.begin(), seen.end());
      std::vector<int64_t> all(static_cast<size_t>(c.num_samples));
      std::iota(all.begin(), all.end(), 0);
      ASSERT_EQ(seen, all) << c.num_samples << " samples, " << c.num_ranks << " ranks";
    }
  }
}

TEST(LengthBuckets, BatchesKeepTheirPromises) {
  for (const Case& c : random_cases()) {
    const auto lengths = random_lengths(2, c.num_samples);
    const auto buckets = buckets_of(c, lengths);
    for (const auto& batch : epoch_of(buckets, 1, c.num_ranks)) {
      if (batch.samples.empty()) continue;
      int64_t tokens = 0;
      for (const int64_t sample : batch.samples) {
        ASSERT_LE(lengths[static_cast<size_t>(sample)], batch.length);
        tokens += lengths[static_cast<size_t>(sample)];
      }
      const auto padded = static_cast<int64_t>(batch.samples.size()) * batch.length;
      ASSERT_LE(padded, c.max_tokens);
      ASSERT_LE(1 - static_cast<double>(tokens) / static_cast<double>(padded), c.max_padding + 1e-12);
    }
  }
}

// Sorted by length, steps follow one another without overlap: no other choice of neighbours is closer.
TEST(LengthBuckets, BatchesOfAStepAreNeighboursInLength) {
  for (const Case& c : random_cases()) {
    const auto buckets = buckets_of(c, random_lengths(3, c.num_samples));
    std::vector<std::pair<int64_t, int64_t>> spans;  // of the lengths of a step's batches
    for (int64_t step = 0; step < buckets.steps_per_epoch(); ++step) {
      std::pair<int64_t, int64_t> span{INT64_MAX, 0};
      for (int rank = 0; rank < c.num_ranks; ++rank) {
        const auto batch = buckets.batch(step, rank);
        if (batch.samples.empty()) continue;
        span = {std::min(span.first, batch.length), std::max(span.second, batch.length)};
      }
      spans.push_back(span);
    }
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) ASSERT_GE(spans[i].first, spans[i - 1].second);
  }
}

// Batches without samples are a last resort.
TEST(LengthBuckets, RanksHaveBatchesWhereThereAreSamplesEnough) {
  for (const Case& c : random_cases()) {
    const auto buckets = buckets_of(c, random_lengths(4, c.num_samples));
    int64_t empty = 0, largest = 0;
    for (const auto& batch : epoch_of(buckets, 0, c.num_ranks)) {
      empty += batch.samples.empty();
      largest = std::max(largest, static_cast<int64_t>(batch.samples.size()));
    }
    ASSERT_LT(empty, c.num_ranks);
    if (empty > 0) {
      ASSERT_EQ(largest, 1);
    }
    if (buckets.steps_per_epoch() * c.num_ranks <= c.num_samples) {
      ASSERT_EQ(empty, 0);
    }
  }
}

TEST(LengthBuckets, CutsNoMoreThanItMust) {
  const std::vector<int64_t> alike(1000, 10);
  EXPECT_EQ(LengthBuckets(alike, {100, 0.0, 1}, 1).steps_per_epoch(), 100);
  EXPECT_EQ(LengthBuckets(alike, {100, 0.0, 1}, 3).steps_per_epoch(), 34);
  EXPECT_EQ(LengthBuckets(alike, {109, 0.0, 1}, 8).steps_per_epoch(), 13);
  EXPECT_EQ(LengthBuckets(std::vector<int64_t>{1, 10, 100}, {100, 0.1, 1}, 2).steps_per_epoch(), 2);
}

TEST(LengthBuckets, EpochsShuffleBatchesAndSteps) {
  const Case c{600, 300, 0.2, 2};
  const auto lengths = random_lengths(5, c.num_samples);
  const auto buckets = buckets_of(c, lengths), again = buckets_of(c, lengths), other = buckets_of(c, lengths, 4);
  std::set<std::vector<int64_t>> members, orders;  // of batches; of lengths along an epoch
  size_t num_batches = 0;
  for (const int64_t epoch : {0, 1, 2}) {
    std::vector<int64_t> order;
    for (auto& batch : epoch_of(buckets, epoch, c.num_ranks)) {
      order.push_back(batch.length);
      std::sort(batch.samples.begin(), batch.samples.end());
      if (batch.samples.size() > 2) members.insert(batch.samples), ++num_batches;
    }
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3u);
  EXPECT_GT(members.size(), num_batches * 9 / 10);
  int differ = 0;
  for (int64_t step = 0; step < 40; ++step) {
    EXPECT_EQ(buckets.batch(step, 1).samples, again.batch(step, 1).samples);
    differ += buckets.batch(step, 1).samples != other.batch(step, 1).samples;
  }
  EXPECT_GT(differ, 35);
}

TEST(LengthBuckets, NamesEverythingThatIsWrong) {
  try {
    LengthBuckets(std::vector<int64_t>{4, 0, 9, 12}, {8, 1.0, 1}, 2);
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 3u);
    EXPECT_EQ(error.problems()[2].nearest, "12");
  }
  EXPECT_THROW(LengthBuckets(std::vector<int64_t>{}, {8, 0.1, 1}, 2), ConfigError);
}

}  // namespace
}  // namespace braid::data::length_buckets_test
