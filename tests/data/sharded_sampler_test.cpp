// Every sample once per epoch, one order whatever the number of ranks, tails as asked for, and going on where it
// stopped.
#include "braid/data/sharded_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"

namespace braid::data::sharded_sampler_test {
namespace {

constexpr int64_t kNone = -1;

// All ranks of a group, which call next() in turn.
class Group {
 public:
  Group(const ShardedData& data, int num_ranks) {
    for (int rank = 0; rank < num_ranks; ++rank) ranks_.emplace_back(data, rank, num_ranks);
  }
  std::vector<int64_t> round() {
    std::vector<int64_t> samples;
    for (auto& rank : ranks_) samples.push_back(rank.next().value_or(kNone));
    return samples;
  }
  std::vector<int64_t> epoch() {
    std::vector<int64_t> samples;
    for (int64_t left = ranks_[0].rounds_left(); left > 0; --left) {
      EXPECT_EQ(ranks_.back().rounds_left(), left);
      const auto more = round();
      samples.insert(samples.end(), more.begin(), more.end());
    }
    return samples;
  }
  DataPosition position() const {
    for (const auto& rank : ranks_) EXPECT_EQ(rank.position(), ranks_[0].position());
    return ranks_[0].position();
  }
  void go_to(const DataPosition& position) {
    for (auto& rank : ranks_) rank.go_to(position);
  }

 private:
  std::vector<ShardedSampler> ranks_;
};

std::vector<int64_t> order_of(const ShardedData& data, int64_t epoch) {
  const ShardedSampler sampler(data, 0, 1);
  std::vector<int64_t> order;
  for (int64_t place = 0; place < data.num_samples; ++place) order.push_back(sampler.sample(epoch, place));
  return order;
}

TEST(ShardedSampler, AnEpochIsAPermutationThatFollowsFromSeedAndEpoch) {
  std::set<std::vector<int64_t>> orders;
  for (const uint64_t seed : {1, 2}) {
    for (const int64_t epoch : {0, 1, 2}) {
      auto order = order_of({53, seed}, epoch);
      EXPECT_EQ(order, order_of({53, seed}, epoch));
      orders.insert(order);
      std::sort(order.begin(), order.end());
      for (int64_t i = 0; i < 53; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
    }
  }
  EXPECT_EQ(orders.size(), 6u);
  EXPECT_EQ(order_of({4, 9, SampleOrder::AsGiven}, 3), (std::vector<int64_t>{0, 1, 2, 3}));
}

// All ranks together take, round by round, the order of the epoch; only the tail is the enum's.
TEST(ShardedSampler, TheOrderIsTheSameOnEveryNumberOfRanks) {
  for (const int64_t num_samples : {8, 9, 13, 16, 31}) {
    for (const UnevenTail tail : {UnevenTail::Pad, UnevenTail::Drop, UnevenTail::Uneven}) {
      const ShardedData data{num_samples, 5, SampleOrder::Shuffled, tail};
      for (int num_ranks = 1; num_ranks <= 8; ++num_ranks) {
        Group group(data, num_ranks);
        for (const int64_t epoch : {0, 1, 2}) {
          const auto order = order_of(data, epoch);
          auto expected = order;
          const int64_t over = num_samples % num_ranks;
          if (over > 0 && tail == UnevenTail::Drop) expected.resize(static_cast<size_t>(num_samples - over));
          for (int64_t i = 0; over > 0 && tail != UnevenTail::Drop && i < num_ranks - over; ++i) {
            expected.push_back(tail == UnevenTail::Pad ? order[static_cast<size_t>(i)] : kNone);
          }
          EXPECT_EQ(group.position(), (DataPosition{epoch, 0}));
          EXPECT_EQ(group.epoch(), expected) << num_samples << " samples, " << num_ranks << " ranks, epoch " << epoch;
        }
      }
    }
  }
}

TEST(ShardedSampler, PadsADataSetThatIsSmallerThanTheGroup) {
  Group padded({3, 1, SampleOrder::AsGiven, UnevenTail::Pad}, 8);
  EXPECT_EQ(padded.epoch(), (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1}));
  Group uneven({1, 1, SampleOrder::AsGiven, UnevenTail::Uneven}, 3);
  EXPECT_EQ(uneven.epoch(), (std::vector<int64_t>{0, kNone, kNone}));
}

TEST(ShardedSampler, GoesOnWhereItStopped) {
  for (const UnevenTail tail : {UnevenTail::Pad, UnevenTail::Drop, UnevenTail::Uneven}) {
    const ShardedData data{23, 7, SampleOrder::Shuffled, tail};
    for (const int num_ranks : {1, 3, 4}) {
      std::vector<DataPosition> positions;
      std::vector<std::vector<int64_t>> rounds;
      Group whole(data, num_ranks);
      for (int i = 0; i < 60; ++i) positions.push_back(whole.position()), rounds.push_back(whole.round());
      for (size_t stop = 0; stop < 60; ++stop) {
        Group resumed(data, num_ranks);
        resumed.go_to(positions[stop]);
        for (size_t i = stop; i < 60; ++i) ASSERT_EQ(resumed.round(), rounds[i]) << stop;
      }
    }
  }
}

// The rest of the epoch is what nobody had taken, and the next epoch is whole.
TEST(ShardedSampler, GoesOnWithAnotherNumberOfRanks) {
  const ShardedData data{41, 3, SampleOrder::Shuffled, UnevenTail::Uneven};
  for (int before = 1; before <= 6; ++before) {
    for (int after = 1; after <= 6; ++after) {
      Group first(data, before), second(data, after);
      std::vector<int64_t> taken;
      for (int i = 0; i < 5; ++i) {
        for (const int64_t sample : first.round()) taken.push_back(sample);
      }
      second.go_to(first.position());
      for (const int64_t sample : second.epoch()) {
        if (sample != kNone) taken.push_back(sample);
      }
      EXPECT_EQ(taken, order_of(data, 0)) << before << " to " << after;
      EXPECT_EQ(second.position(), (DataPosition{1, 0}));
    }
  }
}

TEST(ShardedSampler, DropsWhatIsLeftAlsoAfterTheNumberOfRanksGrew) {
  const ShardedData data{10, 3, SampleOrder::AsGiven, UnevenTail::Drop};
  Group few(data, 1), many(data, 4);
  for (int i = 0; i < 8; ++i) few.round();
  many.go_to(few.position());  // two samples for four ranks
  EXPECT_EQ(many.position(), (DataPosition{1, 0}));
  EXPECT_EQ(many.round(), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(ShardedSampler, RefusesWhatItCannotShare) {
  EXPECT_THROW(ShardedSampler({0, 1}, 0, 1), ConfigError);
  EXPECT_THROW(ShardedSampler({3, 1, SampleOrder::Shuffled, UnevenTail::Drop}, 0, 4), ConfigError);
  EXPECT_THROW(ShardedSampler({3, 1}, 2, 2), InternalError);
  ShardedSampler sampler({10, 1}, 0, 2);
  EXPECT_THROW(sampler.go_to({0, 10}), ConfigError);
  EXPECT_THROW(sampler.go_to({-1, 0}), ConfigError);
}

}  // namespace
}  // namespace braid::data::sharded_sampler_test
