// Divides rows of the fused kernels among the calling thread's LibTorch threads (at::get_num_threads()). Results never
// depend on the number of threads.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>

#include "braid/base/errors.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

// Calls body(T{}), where T is the element type. check() fails unless that is float32, float64, bfloat16 or float16.
template <class Body>
void with_type(at::ScalarType type, const Body& body) {
  switch (type) {
    case at::kFloat:
      return body(float{});
    case at::kDouble:
      return body(double{});
    case at::kBFloat16:
      return body(c10::BFloat16{});
    case at::kHalf:
      return body(c10::Half{});
    default:
      check(false, "the fused kernels compute on floating-point tensors");
  }
}
// Same as above, for the type of the tensor. check() fails unless that is a contiguous CPU tensor.
template <class Body>
void with_type(const at::Tensor& x, const Body& body) {
  check(x.is_cpu() && x.is_contiguous(), "the fused CPU kernels take contiguous CPU tensors");
  with_type(x.scalar_type(), body);
}

// Returns the dtype of MathOf<T>.
inline at::ScalarType math_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

inline int64_t num_rows(const at::Tensor& x) { return x.numel() / std::max<int64_t>(1, x.size(-1)); }

// Returns the tensor's memory; null for an undefined tensor.
template <class T>
const T* read(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<T>() : nullptr;
}
template <class T>
T* write(const at::Tensor& x) {
  return x.defined() ? x.mutable_data_ptr<T>() : nullptr;
}

constexpr int64_t kGrainElements = 8192;  // with less work, a second thread costs more than it saves

template <class Body>
void parallel_rows(int64_t rows, int64_t width, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, width));
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) { body(RowRange{begin, end}); });
}

// Computes sums over rows. The rows are divided into blocks by their number alone. body(range, sums) writes the
// `num_sums` x `width` sums of its rows; the blocks are then added in order. Returns [num_sums, width].
template <class T, class Body>
at::Tensor sums_over_rows(const at::Tensor& x, int64_t num_sums, const Body& body) {
  using M = MathOf<T>;
  constexpr int64_t kMinBlock = 16, kMaxBlocks = 64;
  const int64_t rows = num_rows(x), width = num_sums * x.size(-1);
  const int64_t block = std::max(kMinBlock, (rows + kMaxBlocks - 1) / kMaxBlocks);
  const int64_t num_blocks = std::max<int64_t>(1, (rows + block - 1) / block);
  const at::Tensor parts = at::empty({num_blocks, num_sums, x.size(-1)}, x.options().dtype(math_type(x)));
  M* const sums = write<M>(parts);
  parallel_rows(num_blocks, block * width, [&](RowRange blocks) {
    for (int64_t i = blocks.begin; i < blocks.end; ++i)
      body(RowRange{i * block, std::min(rows, (i + 1) * block)}, sums + i * width);
  });
  parallel_rows(width, num_blocks, [&](RowRange columns) {
    best_kernels<RowKernels<T>>().sum_parts({sums, num_blocks, width, sums}, columns);
  });
  return parts.select(0, 0);
}

// The sums of sums_over_tokens().
struct TokenSums {
  int64_t num_sums;
  int64_t parts;  // of each sequence's tokens
};

// Computes sums over the rows of each part of the tokens of x [.., t, c], sequence after sequence. Returns [parts,
// num_sums, c].
template <class T, class Body>
at::Tensor sums_over_tokens(const at::Tensor& x, const TokenSums& of, const Body& body) {
  using M = MathOf<T>;
  const int64_t t = x.size(-2), sequences = num_rows(x) / std::max<int64_t>(1, t), width = of.num_sums * x.size(-1);
  const at::Tensor all = at::empty({of.parts, sequences, of.num_sums, x.size(-1)}, x.options().dtype(math_type(x)));
  M* const sums = write<M>(all);
  parallel_rows(of.parts * sequences, t * width, [&](RowRange blocks) {
    for (int64_t i = blocks.begin; i < blocks.end; ++i) {
      const int64_t part = i / sequences, first = i % sequences * t;
      body(RowRange{first + t * part / of.parts, first + t * (part + 1) / of.parts}, sums + i * width);
    }
  });
  parallel_rows(of.parts, sequences * width, [&](RowRange parts) {
    for (int64_t part = parts.begin; part < parts.end; ++part) {
      M* const of_part = sums + part * sequences * width;
      best_kernels<RowKernels<T>>().sum_parts({of_part, sequences, width, of_part}, {0, width});
    }
  });
  return all.select(1, 0);
}

}  // namespace braid::kernels
