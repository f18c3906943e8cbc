// Every block is a message of its own, so threads share them out.
#include "braid/sync/reducers/block_codecs.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "braid/sync/reducers/elements.h"

namespace braid {
namespace {

constexpr int64_t kGrain = 16;  // blocks

int64_t one_bit_bytes(int64_t count) { return 8 + (count + 7) / 8; }
int64_t eight_bit_bytes(int64_t count) { return 4 + count; }

int64_t total_bytes(int64_t count, int64_t (*of_block)(int64_t)) {
  const int64_t rest = count % kCodecBlock;
  return count / kCodecBlock * of_block(kCodecBlock) + (rest > 0 ? of_block(rest) : 0);
}

// work(first element, number of elements, place of the block's message).
template <class Work>
void for_blocks(int64_t count, int64_t bytes_per_block, const Work& work) {
  at::parallel_for(0, (count + kCodecBlock - 1) / kCodecBlock, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      work(b * kCodecBlock, std::min(kCodecBlock, count - b * kCodecBlock), b * bytes_per_block);
    }
  });
}

struct Means {
  float high = 0, low = 0;
};

template <class T>
Means side_means(const T* x, int64_t count) {
  double high = 0, low = 0;
  int64_t num_high = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool is_high = x[i] >= 0;
    high += is_high ? static_cast<double>(x[i]) : 0;
    low += is_high ? 0 : static_cast<double>(x[i]);  // NaN counts as low
    num_high += is_high;
  }
  Means means;
  if (num_high > 0) means.high = static_cast<float>(high / static_cast<double>(num_high));
  if (num_high < count) means.low = static_cast<float>(low / static_cast<double>(count - num_high));
  return means;
}

template <class T>
void to_bits(T* x, int64_t count, std::byte* message) {
  const Means means = side_means(x, count);
  std::memcpy(message, &means, 8);
  message += 8;
  for (int64_t first = 0; first < count; first += 8) {
    unsigned bits = 0;
    for (int64_t j = 0; j < std::min<int64_t>(8, count - first); ++j) {
      const bool is_high = x[first + j] >= 0;
      bits |= static_cast<unsigned>(is_high) << j;
      x[first + j] -= static_cast<T>(is_high ? means.high : means.low);
    }
    *message++ = static_cast<std::byte>(bits);
  }
}

template <class T>
void add_bits(const std::byte* message, T* sum, int64_t count) {
  Means means;
  std::memcpy(&means, message, 8);
  for (int64_t i = 0; i < count; ++i) {
    const bool is_high = (static_cast<unsigned>(message[8 + i / 8]) >> (i % 8)) & 1u;
    sum[i] += static_cast<T>(is_high ? means.high : means.low);
  }
}

// NaN where there is one.
template <class T>
float largest_magnitude(const T* x, int64_t count) {
  T largest = 0, spoilt = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(x[i]));
    spoilt += x[i] - x[i];  // 0 where it is finite
  }
  return static_cast<float>(largest + spoilt);
}

template <class T>
void to_bytes(T* x, int64_t count, std::byte* message) {
  const float step = largest_magnitude(x, count) / 127;
  std::memcpy(message, &step, 4);
  auto* codes = reinterpret_cast<int8_t*>(message + 4);
  const bool has_scale = std::isfinite(step) && step > 0;
  for (int64_t i = 0; i < count; ++i) {
    const T multiple = has_scale ? std::nearbyint(x[i] / static_cast<T>(step)) : T{0};
    codes[i] = static_cast<int8_t>(std::clamp<T>(multiple, -127, 127));
    x[i] -= static_cast<T>(codes[i]) * static_cast<T>(step);
  }
}

template <class T>
void add_bytes(const std::byte* message, T* sum, int64_t count) {
  float step;
  std::memcpy(&step, message, 4);
  const auto* codes = reinterpret_cast<const int8_t*>(message + 4);
  for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<T>(codes[i]) * static_cast<T>(step);
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

}  // namespace braid
