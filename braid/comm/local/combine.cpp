// Loops that combine buffers. Blocks of a few KiB stay in the L1 cache while a loop walks the tree over the inputs. So
// each input is read once and each output is written once. Inner loops have a fixed length, because -O2 vectorises only
// those.
#include "braid/comm/local/combine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "braid/base/bfloat16.h"

namespace braid::comm::local {
namespace {

constexpr int64_t kBlock = 512;  // elements
constexpr int kLanes = 16;
constexpr int kLevels = 32;  // maximum depth of the tree, more than an int can count

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

// float16; its conversions are single instructions.
using F16 = _Float16;

template <class T>
constexpr bool kIsShort = std::is_same_v<T, Bf16> || std::is_same_v<T, F16>;

// Sets out[i] and also[i] to function(i) for i < count. `function` may read the old values of out[i] and also[i], but
// no element that another index overwrites, so the iterations are independent.
template <class Out, class Function>
void fill(Out* out, Out* also, int64_t count, const Function& function) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma GCC ivdep
    for (int j = 0; j < kLanes; ++j) also[i + j] = out[i + j] = function(i + j);
  }
  for (; i < count; ++i) also[i] = out[i] = function(i);
}

template <class Out, class Function>
void fill(Out* out, int64_t count, const Function& function) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma GCC ivdep
    for (int j = 0; j < kLanes; ++j) out[i + j] = function(i + j);
  }
  for (; i < count; ++i) out[i] = function(i);
}

template <class In, class Out, class Op>
struct Tree {
  using Partial = std::conditional_t<kIsShort<In>, float, In>;

  const CombineCall& work;
  int64_t begin, count;  // the block, relative to input_begin

  static Partial widened(In value) {
    if constexpr (std::is_same_v<In, Bf16>) {
      return widen(value);
    } else {
      return static_cast<Partial>(value);
    }
  }
  static Out rounded(Partial value) {
    if constexpr (std::is_same_v<Out, Bf16>) {
      return narrow(value);
    } else {
      return static_cast<Out>(value);
    }
  }
  static Out converted(In value) {
    if constexpr (std::is_same_v<In, Out>) {
      return value;
    } else {
      return rounded(widened(value));
    }
  }

  const In* input(int64_t index) const { return static_cast<const In*>(work.inputs[index]) + work.input_begin + begin; }
  Out* output(int64_t index) const { return static_cast<Out*>(work.outputs[index]) + work.output_begin + begin; }

  // Combines inputs [first, first + num). The result is in scratch[0], or is the input itself if a single input needs
  // no conversion.
  const Partial* value(int64_t first, int64_t num, Partial (*scratch)[kBlock]) const {
    Partial* out = scratch[0];
    if (num == 1) {
      const In* in = input(first);
      if constexpr (std::is_same_v<In, Partial>) return in;
      if constexpr (!std::is_same_v<In, Partial>) fill(out, count, [in](int64_t i) { return widened(in[i]); });
      return out;
    }
    int64_t left = left_of(num);
    const Partial* a = value(first, left, scratch);
    const Partial* b = value(first + left, num - left, scratch + 1);
    fill(out, count, [a, b](int64_t i) { return Op::of(a[i], b[i]); });
    return out;
  }

  // Writes the last step of the tree straight to the outputs.
  void run(Partial (*scratch)[kBlock]) const {
    int64_t num = static_cast<int64_t>(work.inputs.size());
    const In *in0 = input(0), *in1 = input(num > 1 ? 1 : 0);
    if (num == 1) return emit([in0](int64_t i) { return converted(in0[i]); });
    if (num == 2) return emit([in0, in1](int64_t i) { return rounded(Op::of(widened(in0[i]), widened(in1[i]))); });
    int64_t left = left_of(num);
    const Partial* a = value(0, left, scratch);
    const Partial* b = value(left, num - left, scratch + 1);
    emit([a, b](int64_t i) { return rounded(Op::of(a[i], b[i])); });
  }

  static int64_t left_of(int64_t num) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num - 1))); }

  template <class Function>
  void emit(const Function& function) const {
    int64_t num = static_cast<int64_t>(work.outputs.size());
    if (num == 1) return fill(output(0), count, function);
    if (num == 2) return fill(output(0), output(1), count, function);
    Out block[kBlock];
    fill(block, count, function);
    for (int64_t index = 0; index < num; ++index) std::memcpy(output(index), block, count * sizeof(Out));
  }
};

template <class In, class Out, class Op>
void combine(const CombineCall& work) {
  alignas(64) typename Tree<In, Out, Op>::Partial scratch[kLevels][kBlock];
  for (int64_t begin = 0; begin < work.count; begin += kBlock) {
    Tree<In, Out, Op>{work, begin, std::min(kBlock, work.count - begin)}.run(scratch);
  }
}

template <class T>
Combine combine_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return combine<T, T, Sum>;
    case ReduceOp::Max:
      return combine<T, T, Max>;
    case ReduceOp::Min:
      return combine<T, T, Min>;
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
    case at::kHalf:
      return combine_of<F16>(op);
    case at::kLong:
      return combine_of<int64_t>(op);
    default:
      return nullptr;
  }
}

at::ScalarType partial_type(at::ScalarType type, ReduceOp op) {
  const bool is_short = type == at::kBFloat16 || type == at::kHalf;
  return is_short && op == ReduceOp::Sum ? at::kFloat : type;
}

Combine combine_to_partial(at::ScalarType type, ReduceOp op) {
  if (partial_type(type, op) == type) return combine_of(type, op);
  return type == at::kHalf ? combine<F16, float, Sum> : combine<Bf16, float, Sum>;
}

Combine combine_partials(at::ScalarType type, ReduceOp op) {
  if (partial_type(type, op) == type) return combine_of(type, op);
  return type == at::kHalf ? combine<float, F16, Sum> : combine<float, Bf16, Sum>;
}

}  // namespace braid::comm::local
