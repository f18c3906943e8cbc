// The codec first finds the k-th largest magnitude. Then one pass, in the order of indices, takes the elements above
// it, and elements equal to it until k are taken. Magnitudes compare as bits, so NaN is above infinity.
#include "braid/sync/reducers/top_k_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "braid/base/errors.h"
#include "braid/sync/reducers/codec.h"

namespace braid::sync {
namespace {

constexpr int kCountedBits = 12;  // upper bits of a magnitude; few enough that the counters stay in the L1 cache

template <class T>
using Bits = std::conditional_t<std::is_same_v<T, double>, uint64_t, uint32_t>;

template <class T>
Bits<T> magnitude(T value) {
  return std::bit_cast<Bits<T>>(value) & (~Bits<T>{0} >> 1);
}

// Returns the `place`-th largest magnitude, from 1. Counts the upper bits, then selects among the magnitudes whose
// upper bits equal those of the result.
template <class T>
Bits<T> largest_at(const T* values, int64_t count, int64_t place) {
  constexpr int kShift = 8 * sizeof(T) - 1 - kCountedBits;
  std::vector<int64_t> counts(size_t{1} << kCountedBits);
  for (int64_t i = 0; i < count; ++i) ++counts[magnitude(values[i]) >> kShift];
  size_t upper = counts.size() - 1;
  for (; place > counts[upper]; --upper) place -= counts[upper];
  std::vector<Bits<T>> alike;
  alike.reserve(static_cast<size_t>(counts[upper]));
  for (int64_t i = 0; i < count; ++i) {
    const Bits<T> here = magnitude(values[i]);
    if (here >> kShift == upper) alike.push_back(here);
  }
  std::nth_element(alike.begin(), alike.begin() + (place - 1), alike.end(), std::greater<>());
  return alike[static_cast<size_t>(place - 1)];
}

template <class T>
void take_largest(T* values, int64_t count, int64_t num_kept, std::byte* message) {
  const Bits<T> smallest = largest_at(values, count, num_kept);
  const auto num_above = std::count_if(values, values + count, [&](T each) { return magnitude(each) > smallest; });
  int64_t room = num_kept - num_above;  // number of elements equal to the smallest that are kept
  std::byte* of_values = message + 4 * num_kept;
  for (int64_t i = 0; i < count; ++i) {
    const Bits<T> here = magnitude(values[i]);
    if (here < smallest || (here == smallest && room-- <= 0)) continue;
    const auto index = static_cast<uint32_t>(i);
    const auto value = static_cast<float>(values[i]);
    std::memcpy(message, &index, 4);
    std::memcpy(of_values, &value, 4);
    message += 4;
    of_values += 4;
    values[i] -= static_cast<T>(value);
  }
}

}  // namespace

int64_t TopKCodec::num_kept(int64_t count) const {
  const auto share = static_cast<int64_t>(std::ceil(fraction_ * static_cast<double>(count)));
  return std::clamp<int64_t>(share, std::min<int64_t>(1, count), count);
}

void TopKCodec::encode(const at::Tensor& values, std::byte* message) const {
  const int64_t count = values.numel();
  check(count <= std::numeric_limits<uint32_t>::max(), "indices of a gradient fit 32 bits");
  if (count == 0) return;
  with_elements(values, [&](auto* elements) { take_largest(elements, count, num_kept(count), message); });
}

void TopKCodec::add(const std::byte* message, const at::Tensor& sum) const {
  const int64_t num = num_kept(sum.numel());
  with_elements(sum, [&](auto* elements) {
    for (int64_t i = 0; i < num; ++i) {
      uint32_t index;
      float value;
      std::memcpy(&index, message + 4 * i, 4);
      std::memcpy(&value, message + 4 * (num + i), 4);
      elements[index] += value;
    }
  });
}

}  // namespace braid::sync
