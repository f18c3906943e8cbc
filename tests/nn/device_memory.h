// Memory aligned as a device's, and float64 to judge what a device's kernel bodies make of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "braid/nn/kernels/math_type.h"
#include "tests/support/host_team.h"

namespace braid::kernels {

constexpr int64_t kRows = 5, kWidth = 40;

using Numbers = std::vector<double>;

// Aligned to a pack, as device memory is.
template <class T>
struct Memory {
  explicit Memory(size_t count) : packs((count * sizeof(T) + 15) / 16) {}
  Memory(const Numbers& from) : Memory(from.size()) {
    for (size_t i = 0; i < from.size(); ++i) data()[i] = static_cast<T>(from[i]);
  }
  T* data() { return reinterpret_cast<T*>(packs.data()); }
  Numbers read(size_t count) {
    Numbers values;
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(data()[i]));
    return values;
  }
  struct alignas(16) Chunk {
    char bytes[16];
  };
  std::vector<Chunk> packs;
};

// In (-size, size), irregular, and exact in T.
template <class T>
Numbers some(int64_t count, int seed, double size = 2) {
  Numbers values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(
        static_cast<double>(static_cast<T>(size * std::sin(1.7 * static_cast<double>(i * i + seed * 31)))));
  }
  return values;
}

template <class T>
constexpr double kRounding = std::is_same_v<T, double>  ? 1e-13
                             : std::is_same_v<T, float> ? 2e-6
                                                        : 5e-3;

inline void expect_near(const Numbers& found, const Numbers& expected, double tolerance, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << " at " << i;
  }
}

}  // namespace braid::kernels
