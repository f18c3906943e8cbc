// Rooflines by hand.
#include "braid/plan/device_rates.h"

#include <gtest/gtest.h>

namespace braid::plan::device_rates_test {
namespace {

DeviceGroup group() {
  return {.memory_bytes_per_second = 1e12,
          .peaks = {{DType::Float32, 1e13}, {DType::Float16, 1e14}},
          .shares = {{DType::Float16, 1e9, 0.2}, {DType::Float16, 1e11, 0.6}}};
}

TEST(DeviceRates, SharesAreLinearInTheLogarithm) {
  const DeviceRates rates(group(), DType::Float16);
  EXPECT_NEAR(rates.share(1e10), 0.4, 1e-12);
  EXPECT_EQ(rates.share(1e3), 0.2);
  EXPECT_EQ(rates.share(1e15), 0.6);
  EXPECT_EQ(rates.best_rate(), 0.6e14);
}

TEST(DeviceRates, AreTheSlowerOfComputingAndMoving) {
  const DeviceRates rates(group(), DType::Float16);
  EXPECT_NEAR(rates.seconds({1e11, 1e6}), 1e11 / 0.6e14, 1e-12);
  EXPECT_NEAR(rates.seconds({1e9, 1e9}), 1e-3, 1e-12);
}

TEST(DeviceRates, OfTypesWithoutFigures) {
  EXPECT_EQ(DeviceRates(group(), DType::BFloat16).peak(), 1e14);  // the other of 16 bits
  EXPECT_EQ(DeviceRates(group(), DType::BFloat16).share(1e9), 0.2);
  EXPECT_EQ(DeviceRates(group(), DType::Float32).best_rate(), 1e13);  // no shares
  EXPECT_EQ(DeviceRates(group(), DType::Float64).peak(), 1e13);
}

TEST(DeviceRates, AttentionIsAProductWhereItsRateIsNotKnown) {
  DeviceGroup known = group();
  known.attention = {{DType::Float16, 128, 1e12, 2e12}, {DType::Float16, 512, 3e12, 2e12}};
  const DeviceRates with(known, DType::Float16), without(group(), DType::Float16);
  const Product work{1e10, 1};
  EXPECT_NEAR(with.attention_seconds(work, 256, AttentionPass::Forward), 1e10 / 2e12, 1e-12);
  EXPECT_NEAR(with.attention_seconds(work, 64, AttentionPass::Backward), 1e10 / 2e12, 1e-12);
  EXPECT_EQ(without.attention_seconds(work, 256, AttentionPass::Forward), without.seconds(work));
}

TEST(DeviceRates, SmallTensorsAreStreamedFromCaches) {
  DeviceGroup known = group();
  known.streams = {{1e4, 4e12}, {1e8, 1e12}};
  const DeviceRates with(known, DType::Float16), without(group(), DType::Float16);
  EXPECT_NEAR(with.stream_seconds(1e9, 1e6), 1e9 / 2.5e12, 1e-12);
  EXPECT_EQ(with.stream_seconds(1e9, 1), 1e9 / 4e12);
  EXPECT_EQ(without.stream_seconds(1e9, 1), 1e-3);
}

}  // namespace
}  // namespace braid::plan::device_rates_test
