// The combining loops. Blocks of a few KiB stay in the first-level cache while the tree over the inputs is walked, so
// each input is read once and each output written once. Inner loops have a fixed length: that is what -O2 vectorises.
#include "braid/comm/local/combine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace braid {
namespace {

constexpr int64_t kBlock = 512;  // elements
constexpr int kLanes = 16;
constexpr int kLevels = 32;  // of the tree; more than an int counts

struct Bf16 {
  uint16_t bits;
};

struct Sum {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Wrapping = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    } else {
      return a + b;
    }
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return (a < b) | (b != b) ? b : a;
  }
};
struct Min {
  template <class T>
  static T of(T a, T b) {
    return (b < a) | (b != b) ? b : a;
  }
};

float widen(Bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

// To nearest, ties to even.
Bf16 narrow(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(value != value ? 0x7fc0u : rounded)};
}

// out[i] = function(i) for i < count; `function` may read what out[i] overwrites, not what another out[j] does.
template <class Out, class Function>
void fill(Out* out, int64_t count, const Function& function) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Out lanes[kLanes];
    for (int j = 0; j < kLanes; ++j) lanes[j] = function(i + j);
    std::memcpy(out + i, lanes, sizeof lanes);
  }
  for (; i < count; ++i) out[i] = function(i);
}

template <class T, class Op>
struct Tree {
  using Partial = std::conditional_t<std::is_same_v<T, Bf16>, float, T>;

  const Combination& work;
  int64_t begin, count;  // the block, relative to input_begin

  const T* input(int64_t index) const { return static_cast<const T*>(work.inputs[index]) + work.input_begin + begin; }

  // Inputs [first, first + num) combined. The result is in scratch[0] or, for a single input, where that lies.
  const Partial* value(int64_t first, int64_t num, Partial (*scratch)[kBlock]) const {
    Partial* out = scratch[0];
    if (num == 1) {
      const T* in = input(first);
      if constexpr (std::is_same_v<T, Partial>) return in;
      if constexpr (!std::is_same_v<T, Partial>) fill(out, count, [in](int64_t i) { return widen(in[i]); });
      return out;
    }
    int64_t left = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num - 1)));
    const Partial* a = value(first, left, scratch);
    const Partial* b = value(first + left, num - left, scratch + 1);
    fill(out, count, [a, b](int64_t i) { return Op::of(a[i], b[i]); });
    return out;
  }

  void store(const Partial* result) const {
    T rounded[kBlock];
    const T* from;
    if constexpr (std::is_same_v<T, Partial>) {
      from = result;
    } else {
      fill(rounded, count, [result](int64_t i) { return narrow(result[i]); });
      from = rounded;
    }
    for (void* output : work.outputs) {
      T* to = static_cast<T*>(output) + work.output_begin + begin;
      if (to != from) std::memcpy(to, from, count * sizeof(T));
    }
  }
};

template <class T, class Op>
void combine(const Combination& work) {
  alignas(64) typename Tree<T, Op>::Partial scratch[kLevels][kBlock];
  for (int64_t begin = 0; begin < work.count; begin += kBlock) {
    Tree<T, Op> tree{work, begin, std::min(kBlock, work.count - begin)};
    tree.store(tree.value(0, static_cast<int64_t>(work.inputs.size()), scratch));
  }
}

template <class T>
Combine combine_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return combine<T, Sum>;
    case ReduceOp::Max:
      return combine<T, Max>;
    case ReduceOp::Min:
      return combine<T, Min>;
  }
  return nullptr;
}

}  // namespace

Combine combine_of(at::ScalarType type, ReduceOp op) {
  switch (type) {
    case at::kFloat:
      return combine_of<float>(op);
    case at::kDouble:
      return combine_of<double>(op);
    case at::kBFloat16:
      return combine_of<Bf16>(op);
    case at::kLong:
      return combine_of<int64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace braid
