// The closed forms against failures that are drawn one by one.
#include "braid/predict/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace braid::goodput_test {
namespace {

// A run of `intervals` intervals of steps, each with a save at its end; what fails before the save is over is made
// again.
double drawn_goodput(const FailureModel& model, double interval, int intervals, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> until_failure(1 / model.mean_between);
  double clock = 0, fails = until_failure(random);
  for (int done = 0; done < intervals;) {
    if (fails >= clock + interval + model.stall) {
      clock += interval + model.stall;
      ++done;
      continue;
    }
    clock = fails;
    fails += until_failure(random);
    while (fails < clock + model.restart) {  // it fails while it restarts
      clock = fails;
      fails += until_failure(random);
    }
    clock += model.restart;
  }
  return interval * intervals / clock;
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

TEST(Goodput, WhereNothingFailsOnlyStallsCost) {
  EXPECT_EQ(goodput({0, 2, 60}, 8), 0.8);
  EXPECT_TRUE(std::isinf(daly_interval({0, 2, 60})));
  EXPECT_EQ(goodput({0, 2, 60}, daly_interval({0, 2, 60})), 1);
}

TEST(Goodput, SparesAreWaitedForLess) {
  // 100 nodes that fail once in 1000 hours, a day of repair: 2.4 are under repair on average.
  const auto share = [](int64_t spares) { return share_without_waiting(1000, 100, spares, 24); };
  EXPECT_NEAR(share(0), std::exp(-2.4), 1e-12);
  EXPECT_NEAR(share(2), std::exp(-2.4) * (1 + 2.4 + 2.4 * 2.4 / 2), 1e-12);
  EXPECT_GT(share(8), 0.998);
  EXPECT_EQ(mean_between_failures(50000, 100000), 0.5);
}

}  // namespace
}  // namespace braid::goodput_test
