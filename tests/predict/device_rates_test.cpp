// Rooflines by hand.
#include "braid/predict/device_rates.h"

#include <gtest/gtest.h>

namespace braid::device_rates_test {
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

}  // namespace
}  // namespace braid::device_rates_test
