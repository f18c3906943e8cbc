// The division of lost workers' samples: every share of every step is one worker's, whoever is lost and whenever.
#include "braid/train/lost_workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace braid::train::tests::lost_workers_test {
namespace {

constexpr int kData = 5;
constexpr int64_t kSteps = 40;

using Times = std::map<std::pair<int64_t, int>, int>;  // how often each share was trained on

void train(const std::vector<SampleShare>& shares, size_t count, Times& times) {
  for (size_t i = 0; i < count; ++i) ++times[{shares[i].step, shares[i].data_rank}];
}

// Loses workers at drawn steps, each after a drawn part of its work.
Times times_of_run(unsigned seed) {
  std::mt19937 draws(seed);
  Times times;
  SharedWork work{.num_data = kData, .step = 0, .workers = {0, 1, 2, 3, 4}, .pushes = {}, .taken = {}};
  while (work.step < kSteps) {
    const int64_t end = std::min<int64_t>(kSteps, work.step + static_cast<int64_t>(draws() % 12));
    std::vector<int> there;
    std::vector<SampleShare> left;
    for (size_t place = 0; place < work.workers.size(); ++place) {
      const auto shares = work.shares_of(static_cast<int>(place), end);
      const bool is_lost = place > 0 && end < kSteps && draws() % 4 == 0;
      const size_t done = is_lost ? draws() % (shares.size() + 1) : shares.size();
      train(shares, done, times);
      if (!is_lost) there.push_back(work.workers[place]);
      left.insert(left.end(), shares.begin() + static_cast<std::ptrdiff_t>(done), shares.end());
    }
    work = {.num_data = kData, .step = end, .workers = there, .pushes = {}, .taken = left};
  }
  return times;
}

TEST(LostWorkers, EveryShareIsTrainedOnOnce) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Times times = times_of_run(seed);
    EXPECT_EQ(times.size(), kData * kSteps) << seed;
    EXPECT_TRUE(std::ranges::all_of(times, [](const auto& each) { return each.second == 1; })) << seed;
  }
}

TEST(LostWorkers, LostSharesGoToTheOthersInTurn) {
  const SharedWork work{.num_data = 4, .step = 8, .workers = {0, 2, 3}, .pushes = {}, .taken = {{6, 1}, {7, 1}}};
  EXPECT_EQ(work.taken_by(0), (std::vector<SampleShare>{{6, 1}}));
  EXPECT_EQ(work.taken_by(1), (std::vector<SampleShare>{{7, 1}}));
  EXPECT_TRUE(work.taken_by(2).empty());
  EXPECT_EQ(work.shares_of(0, 10), (std::vector<SampleShare>{{6, 1}, {8, 0}, {8, 1}, {9, 0}}));
  EXPECT_EQ(work.shares_of(1, 10), (std::vector<SampleShare>{{7, 1}, {8, 2}, {9, 2}, {9, 1}}));
}

}  // namespace
}  // namespace braid::train::tests::lost_workers_test
