// Partitions against trying every one; costs are small integers, so that equal is equal.
#include "braid/plan/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "braid/base/errors.h"
#include "braid/plan/stage_costs.h"
#include "tests/support/dice.h"

namespace braid::plan::partition_test {
namespace {

std::vector<Holder> one_each(int ranks) {
  std::vector<Holder> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back({rank, rank, 1, 1});
  return all;
}

std::vector<Holder> interleaved(int ranks, int chunks) {
  std::vector<Holder> all;
  for (int stage = 0; stage < ranks * chunks; ++stage) all.push_back({stage, stage % ranks, 1, 1});
  return all;
}

std::vector<Holder> nested(int ranks) {
  std::vector<Holder> all;
  for (int stage = 0; stage < 2 * ranks; ++stage) all.push_back({stage, std::min(stage, 2 * ranks - 1 - stage), 1, 1});
  return all;
}

std::vector<Holder> bidirectional(int ranks) {
  std::vector<Holder> all;
  for (int stage = 0; stage < ranks; ++stage) {
    all.push_back({stage, stage, 0.5, 1});
    all.push_back({stage, ranks - 1 - stage, 0.5, 1});
  }
  return all;
}

std::vector<Holder> anywhere(int stages, int ranks, Dice& dice) {
  std::vector<Holder> all;
  for (int stage = 0; stage < stages; ++stage) all.push_back({stage, dice.between(0, ranks - 1), 1, 1});
  return all;
}

std::vector<Holder> some_holders(Dice& dice) {
  switch (dice.between(0, 4)) {
    case 0:
      return one_each(dice.between(1, 5));
    case 1:
      return interleaved(dice.between(1, 3), 2);
    case 2:
      return nested(dice.between(1, 3));
    case 3:
      return bidirectional(2 * dice.between(1, 2));
    default:
      return anywhere(dice.between(1, 6), 3, dice);
  }
}

PartitionRequest some_request(uint64_t seed) {
  Dice dice(seed);
  PartitionRequest request;
  request.holders = some_holders(dice);
  const int num_stages = request.holders.back().stage + 1;
  for (Holder& holder : request.holders) holder.in_flight = dice.between(0, 4);
  const int num_units = num_stages + dice.between(0, 5);
  for (int i = 0; i < num_units; ++i) {
    const double heavy = dice.between(0, 5) == 0 ? 8 : 1;
    request.units.push_back({std::string(1, static_cast<char>('a' + i)), heavy * dice.between(0, 3),
                             double(dice.between(0, 3)), double(dice.between(0, 3)), dice.between(0, 3),
                             dice.between(0, 9)});
  }
  if (dice.between(0, 1) == 0) {
    for (int rank = 0; rank < 6; ++rank) request.speeds.push_back(std::ldexp(1, dice.between(-1, 2)));
  }
  if (dice.between(0, 1) == 0) request.limit_bytes = dice.between(5, 60);
  return request;
}

void for_every_partition(int num_units, int num_stages, const std::function<void(const std::vector<int>&)>& body) {
  std::vector<int> cuts{0};
  const std::function<void()> go = [&] {
    const int placed = static_cast<int>(cuts.size());
    if (placed == num_stages) {
      cuts.push_back(num_units);
      body(cuts);
      cuts.pop_back();
      return;
    }
    for (int next = cuts.back() + 1; next <= num_units - (num_stages - placed); ++next) {
      cuts.push_back(next);
      go();
      cuts.pop_back();
    }
  };
  go();
}

// The cost of a partition, written down once more.
Score plain_score(const PartitionRequest& request, const std::vector<int>& cuts) {
  std::vector<double> ranks(6, 0), stages(cuts.size() - 1, 0);
  std::vector<int64_t> bytes(6, 0);
  for (const Holder& holder : request.holders) {
    double seconds = 0;
    for (int i = cuts[holder.stage]; i < cuts[holder.stage + 1]; ++i) {
      const Unit& unit = request.units[i];
      seconds += unit.forward + unit.input_grad + unit.weight_grad;
      bytes[holder.rank] += unit.fixed_bytes + holder.in_flight * unit.activation_bytes;
    }
    seconds /= request.speeds.empty() ? 1 : request.speeds[holder.rank];
    ranks[holder.rank] += holder.share * seconds;
    stages[holder.stage] = std::max(stages[holder.stage], seconds);
  }
  Score score;
  const int64_t fullest = *std::max_element(bytes.begin(), bytes.end());
  if (request.limit_bytes > 0) score.bytes_over = std::max<int64_t>(0, fullest - request.limit_bytes);
  score.rank_seconds = *std::max_element(ranks.begin(), ranks.end());
  score.stage_seconds = *std::max_element(stages.begin(), stages.end());
  score.squares = std::inner_product(stages.begin(), stages.end(), stages.begin(), 0.0);
  return score;
}

Score best_of_all(const PartitionRequest& request) {
  Score best;
  best.bytes_over = INT64_MAX;
  for_every_partition(static_cast<int>(request.units.size()), request.holders.back().stage + 1,
                      [&](const std::vector<int>& cuts) { best = std::min(best, plain_score(request, cuts)); });
  return best;
}

TEST(Partition, IsTheBestOfAll) {
  int num_fitting = 0, num_limits_that_bind = 0, num_refused = 0;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    const PartitionRequest request = some_request(seed);
    const Score best = best_of_all(request);
    SCOPED_TRACE(seed);
    if (best.bytes_over > 0) {
      ++num_refused;
      EXPECT_THROW(partition_units(request), ConfigError);
      continue;
    }
    const Partition made = partition_units(request);
    EXPECT_EQ(made.quality, Partition::Quality::Best);
    const Score got = plain_score(request, made.first_unit);
    EXPECT_EQ(got.bytes_over, 0);
    EXPECT_EQ(got.rank_seconds, best.rank_seconds);
    EXPECT_EQ(got.stage_seconds, best.stage_seconds);
    EXPECT_EQ(got.squares, best.squares);
    ++num_fitting;
    PartitionRequest free = request;
    free.limit_bytes = 0;
    num_limits_that_bind += best_of_all(free) != best;
  }
  EXPECT_GT(num_fitting, 3000);
  EXPECT_GT(num_limits_that_bind, 300);
  EXPECT_GT(num_refused, 300);
}

TEST(Partition, ReportsWhatItMade) {
  PartitionRequest request;
  for (const int seconds : {1, 2, 3, 4, 5, 6}) request.units.push_back({"u", double(seconds), 0, 0, 10, 100});
  request.holders = nested(2);
  for (Holder& holder : request.holders) holder.in_flight = holder.stage + 1;
  const Partition made = partition_units(request);
  // 1 + 2 | 3 + 4 | 5 | 6 and 1 | 2 + 3 | 4 | 5 + 6 have a rank of 12 too, but a slower stage; 11 and 10 does not
  // exist.
  EXPECT_EQ(made.first_unit, (std::vector{0, 3, 4, 5, 6}));
  EXPECT_EQ(made.stage_seconds, (std::vector<double>{6, 4, 5, 6}));
  EXPECT_EQ(made.rank_seconds, (std::vector<double>{12, 9}));
  EXPECT_EQ(made.rank_bytes, (std::vector<int64_t>{300 + 30 + 100 + 40, 100 + 20 + 100 + 30}));
}

PartitionRequest blocks_with_a_head(int num_blocks, double head) {
  PartitionRequest request;
  request.units.push_back({"embedding", 0.1});
  for (int i = 0; i < num_blocks; ++i) request.units.push_back({"half", 0.5});
  request.units.push_back({"head", head});
  return request;
}

TEST(Partition, GivesAFastRankMore) {
  PartitionRequest request = blocks_with_a_head(24, 0.2);
  request.holders = one_each(3);
  request.speeds = {1, 4, 1};
  EXPECT_EQ(partition_units(request).first_unit, (std::vector{0, 5, 22, 26}));
}

TEST(Partition, MakesUpForAHeavyHeadWithALightChunkOfItsRank) {
  PartitionRequest request = blocks_with_a_head(24, 5.5);
  for (const auto& placed : {nested(2), interleaved(2, 2)}) {
    request.holders = placed;
    const Partition made = partition_units(request);
    EXPECT_EQ(made.quality, Partition::Quality::Best);
    EXPECT_LE(std::abs(made.rank_seconds[0] - made.rank_seconds[1]), 0.5);
    EXPECT_EQ(made.stage_seconds.back(), 5.5);
  }
}

// Sixteen ranks with two chunks each of a deep model, and a placement that is too wide to be searched.
TEST(Partition, TakesLargeModels) {
  PartitionRequest request = blocks_with_a_head(200, 4);
  request.holders = nested(16);
  const Partition exact = partition_units(request);
  EXPECT_EQ(exact.quality, Partition::Quality::Best);
  const double mean = 104.1 / 16;
  EXPECT_LT(*std::max_element(exact.rank_seconds.begin(), exact.rank_seconds.end()), mean + 0.5);
  request.holders = interleaved(16, 4);
  const Partition found = partition_units(request);
  EXPECT_EQ(found.quality, Partition::Quality::Found);
  EXPECT_LT(*std::max_element(found.rank_seconds.begin(), found.rank_seconds.end()), mean + 1);
}

std::string complaint(const PartitionRequest& request) {
  try {
    partition_units(request);
    return "accepted";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Partition, SaysWhichRankDoesNotFitAndByHowMuch) {
  PartitionRequest request;
  constexpr int64_t kGibi = int64_t{1} << 30;
  for (const char* name : {"embedding", "blocks.0.attention", "blocks.0.mlp", "head"}) {
    request.units.push_back({name, 1, 1, 1, 0, kGibi});
  }
  request.units[3].fixed_bytes = 3 * kGibi;
  request.units[3].activation_bytes = kGibi / 2;
  request.holders = one_each(2);
  for (Holder& holder : request.holders) holder.in_flight = 2 - holder.rank;
  request.limit_bytes = 3 * kGibi;
  EXPECT_EQ(complaint(request),
            "memory.limit_gb = 3: must leave room for the model: even in the cut that needs least, rank 1 (stage 1: "
            "head) needs 3.5 GiB, 536870912 bytes over the limit; nearest valid is 3.5");
  request.limit_bytes = 3 * kGibi + kGibi / 2;
  EXPECT_EQ(complaint(request), "accepted");
  request.holders = interleaved(1, 2);
  EXPECT_EQ(complaint(request),
            "memory.limit_gb = 3.5: must leave room for the model: even in the cut that needs least, rank 0 (stages 0, "
            "1: embedding, blocks.0.attention .. head) needs 6.5 GiB, 3221225472 bytes over the limit; nearest valid "
            "is 6.5");
  request.units.resize(1);
  EXPECT_EQ(complaint(request), "pipeline.partition: must leave every stage a part of the model: 2 stages, 1 part");
}

}  // namespace
}  // namespace braid::plan::partition_test
