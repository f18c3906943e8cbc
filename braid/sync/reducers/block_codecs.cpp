// Codecs of 1 and 8 bits. Each block is encoded by itself, so threads work on blocks in parallel.
#include "braid/sync/reducers/block_codecs.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "braid/sync/reducers/codec.h"

namespace braid::sync {
namespace {

constexpr int64_t kCodecGrain = 16;  // blocks
constexpr int kLanes = 16;

int64_t one_bit_bytes(int64_t count) { return 8 + (count + 7) / 8; }
int64_t eight_bit_bytes(int64_t count) { return 4 + count; }

int64_t total_bytes(int64_t count, int64_t (*of_block)(int64_t)) {
  const int64_t rest = count % kCodecBlock;
  return count / kCodecBlock * of_block(kCodecBlock) + (rest > 0 ? of_block(rest) : 0);
}

// Calls work(first element, number of elements, place of the block's message) for each block, on several threads.
template <class Work>
void for_blocks(int64_t count, int64_t bytes_per_block, const Work& work) {
  at::parallel_for(0, (count + kCodecBlock - 1) / kCodecBlock, kCodecGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      work(b * kCodecBlock, std::min(kCodecBlock, count - b * kCodecBlock), b * bytes_per_block);
    }
  });
}

struct Means {
  float high = 0, low = 0;
};

// Calls work(i, lane) for every element. The SIMD lanes of one iteration are independent, so the compiler vectorises
// them at -O2.
template <class Work>
void for_lanes(int64_t count, const Work& work) {
  int64_t first = 0;
  for (; first + kLanes <= count; first += kLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) work(first + lane, lane);
  }
  for (int lane = 0; first + lane < count; ++lane) work(first + lane, lane);
}

template <class T>
using Lanes = std::array<T, kLanes>;

template <class T>
T total(const Lanes<T>& lanes) {
  return std::accumulate(lanes.begin(), lanes.end(), T{0});
}

// Sums each side in a loop of its own. With both in one loop, GCC 12 branches on every sign.
template <class T>
Means side_means(const T* x, int64_t count, int64_t num_high) {
  Lanes<double> high{}, low{};
  for_lanes(count, [&](int64_t i, int lane) { high[lane] += static_cast<double>(x[i] >= 0 ? x[i] : T{0}); });
  for_lanes(count, [&](int64_t i, int lane) {
    low[lane] += static_cast<double>(x[i] >= 0 ? T{0} : x[i]);  // a NaN counts as low
  });
  Means means;
  if (num_high > 0) means.high = static_cast<float>(total(high) / static_cast<double>(num_high));
  if (num_high < count) means.low = static_cast<float>(total(low) / static_cast<double>(count - num_high));
  return means;
}

// Writes a byte for each eight elements, with bit j set if element j is high. Returns the number of high elements.
template <class T>
int64_t write_signs(const T* x, int64_t count, std::byte* signs) {
  int64_t num_high = 0;
  for (int64_t first = 0; first < count; first += 8) {
    const auto here = static_cast<int>(std::min<int64_t>(8, count - first));
    unsigned bits = 0;
    for (int j = 0; j < here; ++j) bits |= static_cast<unsigned>(x[first + j] >= 0) << j;
    signs[first / 8] = static_cast<std::byte>(bits);
    num_high += std::popcount(bits);
  }
  return num_high;
}

template <class T>
void to_bits(T* x, int64_t count, std::byte* message) {
  const Means means = side_means(x, count, write_signs(x, count, message + 8));
  std::memcpy(message, &means, 8);
  const auto high = static_cast<T>(means.high), low = static_cast<T>(means.low);
  for_lanes(count, [x, high, low](int64_t i, int) { x[i] -= x[i] >= 0 ? high : low; });
}

template <class T>
void add_bits(const std::byte* message, T* sum, int64_t count) {
  Means means;
  std::memcpy(&means, message, 8);
  const auto high = static_cast<T>(means.high), low = static_cast<T>(means.low);
  for (int64_t first = 0; first < count; first += 8) {
    const auto bits = static_cast<int>(message[8 + first / 8]);
    const int64_t here = std::min<int64_t>(8, count - first);
    if (here == 8) {
#pragma GCC ivdep
      for (int j = 0; j < 8; ++j) sum[first + j] += (bits & (1 << j)) != 0 ? high : low;
    } else {
      for (int j = 0; j < here; ++j) sum[first + j] += (bits & (1 << j)) != 0 ? high : low;
    }
  }
}

// Returns the largest magnitude, or NaN if an element is NaN or infinite.
template <class T>
float largest_magnitude(const T* x, int64_t count) {
  Lanes<T> largest{}, spoilt{};
  for_lanes(count, [&](int64_t i, int lane) {
    const T magnitude = std::abs(x[i]);
    largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
    spoilt[lane] += x[i] - x[i];  // 0 if the element is finite, else NaN
  });
  return static_cast<float>(*std::max_element(largest.begin(), largest.end()) + total(spoilt));
}

template <class T>
void to_bytes(T* x, int64_t count, std::byte* message) {
  const float step = largest_magnitude(x, count) / 127;
  std::memcpy(message, &step, 4);
  auto* codes = reinterpret_cast<int8_t*>(message + 4);
  const auto unit = static_cast<T>(step);
  if (!std::isfinite(step) || step <= 0) {
    for (int64_t i = 0; i < count; ++i) x[i] -= T{0} * unit;  // NaN in all elements if `unit` is not finite
    std::fill_n(codes, count, int8_t{0});
    return;
  }
  for_lanes(count, [&](int64_t i, int) {
    T code = std::nearbyint(x[i] / unit);
    code = code > 127 ? T{127} : code < -127 ? T{-127} : code;
    codes[i] = static_cast<int8_t>(static_cast<int>(code));
    x[i] -= code * unit;
  });
}

template <class T>
void add_bytes(const std::byte* message, T* sum, int64_t count) {
  float step;
  std::memcpy(&step, message, 4);
  const auto unit = static_cast<T>(step);
  const auto* codes = reinterpret_cast<const int8_t*>(message + 4);
  for_lanes(count, [&](int64_t i, int) { sum[i] += static_cast<T>(static_cast<int>(codes[i])) * unit; });
}

}  // namespace

int64_t OneBitCodec::num_bytes(int64_t count) const { return total_bytes(count, one_bit_bytes); }

void OneBitCodec::encode(const at::Tensor& values, std::byte* message) const {
  with_elements(values, [&](auto* x) {
    for_blocks(values.numel(), one_bit_bytes(kCodecBlock),
               [&](int64_t first, int64_t count, int64_t place) { to_bits(x + first, count, message + place); });
  });
}

void OneBitCodec::add(const std::byte* message, const at::Tensor& sum) const {
  with_elements(sum, [&](auto* x) {
    for_blocks(sum.numel(), one_bit_bytes(kCodecBlock),
               [&](int64_t first, int64_t count, int64_t place) { add_bits(message + place, x + first, count); });
  });
}

int64_t EightBitCodec::num_bytes(int64_t count) const { return total_bytes(count, eight_bit_bytes); }

void EightBitCodec::encode(const at::Tensor& values, std::byte* message) const {
  with_elements(values, [&](auto* x) {
    for_blocks(values.numel(), eight_bit_bytes(kCodecBlock),
               [&](int64_t first, int64_t count, int64_t place) { to_bytes(x + first, count, message + place); });
  });
}

void EightBitCodec::add(const std::byte* message, const at::Tensor& sum) const {
  with_elements(sum, [&](auto* x) {
    for_blocks(sum.numel(), eight_bit_bytes(kCodecBlock),
               [&](int64_t first, int64_t count, int64_t place) { add_bytes(message + place, x + first, count); });
  });
}

}  // namespace braid::sync
