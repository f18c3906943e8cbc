// Sums of squares have the same bits in every order and division of the numbers, and are close to the exact sum.
#include "braid/optim/exact_squares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace braid::optim::exact_squares_test {
namespace {

// Numbers of sizes 2^-`spread` to 2^`spread`.
template <class T>
std::vector<T> drawn(size_t count, int spread, unsigned seed) {
  std::mt19937 draw(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> exponent(-spread, spread);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(std::ldexp(normal(draw), exponent(draw)));
  return values;
}

// Adds the numbers in calls of `step` each.
template <class T>
double sum_in_calls(const std::vector<T>& values, int64_t step) {
  SquareBins bins{};
  const auto count = static_cast<int64_t>(values.size());
  for (int64_t at = 0; at < count; at += step) add_squares(values.data() + at, std::min(step, count - at), bins.data());
  return sum_of_bins(bins.data());
}

template <class T>
void expect_equal_bits(int spread) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<T> values = drawn<T>(16 * 300, spread, seed);
    const double sum = sum_in_calls(values, std::ssize(values));
    long double exact = 0;
    for (const T value : values) exact += static_cast<long double>(value) * value;
    EXPECT_NEAR(sum / static_cast<double>(exact), 1, 1e-12);
    for (const int64_t step : {16, 48, 1024, 1040}) EXPECT_EQ(sum_in_calls(values, step), sum) << step;
    std::shuffle(values.begin(), values.end(), std::mt19937(seed));
    EXPECT_EQ(sum_in_calls(values, 512), sum);
  }
}

TEST(ExactSquares, HaveTheSameBitsInEveryOrder) {
  for (const int spread : {0, 10, 40}) {
    expect_equal_bits<float>(spread);
    expect_equal_bits<double>(spread);
  }
}

TEST(ExactSquares, OfRanksAreAdded) {
  const std::vector<double> values = drawn<double>(16 * 64, 20, 1);
  SquareBins first{}, second{};
  add_squares(values.data(), 16 * 10, first.data());
  add_squares(values.data() + 16 * 10, 16 * 54, second.data());
  for (int k = 0; k < kNumBins; ++k) first[k] += second[k];
  EXPECT_EQ(sum_of_bins(first.data()), sum_in_calls(values, std::ssize(values)));
}

TEST(ExactSquares, OfWhatIsNotFiniteAreNot) {
  std::vector<float> values(32, 1.0F);
  EXPECT_EQ(sum_in_calls(values, 32), 32);
  values[20] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(sum_in_calls(values, 16)));
  values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum_in_calls(values, 16)));
  EXPECT_EQ(sum_in_calls(std::vector<float>(16, 0.0F), 16), 0);
}

}  // namespace
}  // namespace braid::optim::exact_squares_test
