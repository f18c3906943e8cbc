// Test tensors whose every element is known from (salt, rank, index), and the contract's tree computed serially.
// It uses nothing of the communicator.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "braid/base/text.h"
#include "braid/comm/communicator.h"
#include "tests/support/sampled.h"

namespace braid::comm::tests {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kTsan = true;
#else
inline constexpr bool kTsan = false;
#endif

template <class T>
at::ScalarType type_of() {
  return c10::CppTypeToScalarType<T>::value;
}

// In [-1, 1), with all the bits of a double and sizes spread over 2^-31 to 1, so that sums round and every order of
// adding gives other bits; for int64, 64 random bits.
template <class T>
T value(int salt, int rank, int64_t index) {
  uint64_t x = static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) * 0xbf58476d1ce4e5b9u +
               static_cast<uint64_t>(salt) * 0x94d049bb133111ebu;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  x ^= x >> 32;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    double fraction = static_cast<double>(static_cast<int64_t>(x)) * 0x1p-63;
    return static_cast<T>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(
        fraction / static_cast<double>(uint64_t{1} << (x & 31))));
  }
}

template <class T>
T combined(T a, T b, ReduceOp op) {
  if (op == ReduceOp::Max) return a < b ? b : a;
  if (op == ReduceOp::Min) return b < a ? b : a;
  if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

// Neighbours are paired level by level; an odd one out goes up unpaired.
template <class T>
T tree(std::vector<T>& level, ReduceOp op) {
  size_t count = level.size();
  while (count > 1) {
    size_t pairs = count / 2;
    for (size_t i = 0; i < pairs; ++i) level[i] = combined(level[2 * i], level[2 * i + 1], op);
    if (count % 2) level[pairs] = level[count - 1];
    count = pairs + count % 2;
  }
  return level[0];
}

// Element `index` of the combination over `ranks` ranks.
template <class T>
T expected_sum(int salt, int ranks, int64_t index, ReduceOp op) {
  using Partial = std::conditional_t<sizeof(T) == 2, float, T>;
  thread_local std::vector<Partial> level;
  level.clear();
  for (int rank = 0; rank < ranks; ++rank) level.push_back(static_cast<Partial>(value<T>(salt, rank, index)));
  return static_cast<T>(tree(level, op));
}

template <class T>
at::Tensor empty(int64_t count) {
  return at::empty({count}, type_of<T>());
}

// Element i of `tensor` becomes function(i).
template <class T, class Function>
void fill(const at::Tensor& tensor, const Function& function) {
  T* data = tensor.mutable_data_ptr<T>();
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = function(i);
}

// Counts elements that differ in any bit from function(i), and says where the first is.
template <class T, class Function>
testing::AssertionResult holds(const at::Tensor& tensor, const Function& function) {
  const T* data = tensor.const_data_ptr<T>();
  int64_t wrong = 0, first = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    T expected = function(i);
    if (std::memcmp(&expected, data + i, sizeof(T)) != 0 && wrong++ == 0) first = i;
  }
  if (wrong == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << wrong << " of " << tensor.numel() << " elements differ, first at " << first
                                     << ": " << exact(static_cast<double>(data[first])) << " instead of "
                                     << exact(static_cast<double>(function(first)));
}

}  // namespace braid::comm::tests
