// The closed forms against failures that are drawn one by one.
#include "braid/plan/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "braid/base/seeds.h"

namespace braid::plan::goodput_test {
namespace {

// Times at which something fails, each drawn by its number.
class DrawnFailures {
 public:
  DrawnFailures(double mean_between, uint64_t seed) : mean_(mean_between), key_(stream_key(seed, "failures")) {}

  double next() { return last_ -= mean_ * std::log1p(-uniform(key_, count_++)); }

 private:
  double mean_, last_ = 0;
  uint64_t key_, count_ = 0;
};

// A run of `intervals` intervals of steps, each with a save at its end; what fails before the save is over is made
// again.
double drawn_goodput(const FailureModel& model, double interval, int intervals, uint64_t seed) {
  DrawnFailures failures(model.mean_between, seed);
  double clock = 0, fails = failures.next();
  for (int done = 0; done < intervals;) {
    if (fails >= clock + interval + model.stall) {
      clock += interval + model.stall;
      ++done;
      continue;
    }
    clock = fails;
    fails = failures.next();
    while (fails < clock + model.restart) {  // it fails while it restarts
      clock = fails;
      fails = failures.next();
    }
    clock += model.restart;
  }
  return interval * intervals / clock;
}

// Simulates nodes that fail every `mean_between` on average and return after `repair`, whether or not a spare stands
// in.
double drawn_share_without_waiting(double mean_between, size_t spares, double repair, int count) {
  DrawnFailures failures(mean_between, 11);
  std::deque<double> back;  // when those under repair are
  double clock = 0, without = 0;
  const auto pass_until = [&](double time) {
    if (back.size() <= spares) without += time - clock;
    clock = time;
  };
  for (int number = 0; number < count; ++number) {
    const double fails = failures.next();
    for (; !back.empty() && back.front() <= fails; back.pop_front()) pass_until(back.front());
    pass_until(fails);
    back.push_back(fails + repair);
  }
  return without / clock;
}

TEST(Goodput, IsThatOfDrawnFailures) {
  for (const double interval : {50.0, 200.0, 800.0}) {
    const FailureModel model{1000, 10, 60};
    EXPECT_NEAR(drawn_goodput(model, interval, 40000, 7), goodput(model, interval), 0.004) << interval;
  }
}

TEST(Goodput, DalysIntervalIsTheBestAndYoungsIsNearWhereStallsAreShort) {
  for (const double stall : {1.0, 20.0, 200.0}) {
    const FailureModel model{1000, stall, 60};
    const double best = daly_interval(model);
    for (const double factor : {0.8, 1.25}) EXPECT_GT(goodput(model, best), goodput(model, best * factor)) << stall;
  }
  const FailureModel model{1000, 1, 60};
  EXPECT_NEAR(young_interval(model), daly_interval(model), 0.02 * daly_interval(model));
}

TEST(Goodput, DalysIntervalsAreThoseOfHisFigures) {
  // Daly (2006), figures 3 to 5: a save of 5 minutes, a failure in 24 h, 6 h and 15 minutes; in minutes.
  EXPECT_NEAR(daly_interval({24 * 60, 5, 10}), 117, 0.5);
  EXPECT_NEAR(daly_interval({6 * 60, 5, 10}), 57, 0.5);
  EXPECT_NEAR(daly_interval({15, 5, 10}), 9.1, 0.05);
}

TEST(Goodput, WhereSavesCostNothingOnlyRestartsDo) {
  const FailureModel model{1000, 0, 60};
  EXPECT_EQ(daly_interval(model), 0);
  EXPECT_DOUBLE_EQ(goodput(model, 0), std::exp(-0.06));
  EXPECT_NEAR(goodput(model, 1e-3), goodput(model, 0), 1e-6);
}

TEST(Goodput, WhereNothingFailsOnlyStallsCost) {
  EXPECT_EQ(goodput({0, 2, 60}, 8), 0.8);
  EXPECT_TRUE(std::isinf(daly_interval({0, 2, 60})));
  EXPECT_EQ(goodput({0, 2, 60}, daly_interval({0, 2, 60})), 1);
  EXPECT_EQ(goodput({1000, 2, 60}, std::numeric_limits<double>::infinity()), 0);  // NaN before: infinity over infinity
}

TEST(Goodput, SparesAreWaitedForLess) {
  // 100 nodes that fail once in 1000 hours, a day of repair: 2.4 are under repair on average.
  const auto share = [](int64_t spares) { return share_without_waiting(1000, 100, spares, 24); };
  EXPECT_NEAR(share(0), std::exp(-2.4), 1e-12);
  EXPECT_NEAR(share(2), std::exp(-2.4) * (1 + 2.4 + 2.4 * 2.4 / 2), 1e-12);
  EXPECT_GT(share(8), 0.998);
  for (const int64_t spares : {0, 2, 5}) {
    EXPECT_NEAR(drawn_share_without_waiting(10, spares, 24, 200000), share(spares), 0.005) << spares;
  }
  EXPECT_EQ(mean_between_failures(50000, 100000), 0.5);
}

TEST(Goodput, SparesOfVeryManyNodesAreCounted) {
  // 4,000 are under repair on average, more or less some 63: half of the time no more than those.
  const auto share = [](int64_t spares) { return share_without_waiting(6000, 1000000, spares, 24); };
  EXPECT_NEAR(share(4000), 0.5, 0.01);
  EXPECT_LT(share(3700), 1e-5);
  EXPECT_GT(share(4300), 1 - 1e-5);
  EXPECT_EQ(share_without_waiting(6000, 10, 0, 0), 1);
}

}  // namespace
}  // namespace braid::plan::goodput_test
