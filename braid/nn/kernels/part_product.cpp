// Products by tiles. A task has some tiles of the result. It packs stretches of the operands, which stay in the
// second-level cache, and adds the sums of a part to a binary counter of trees, whose levels stay there too.
#include "braid/nn/kernels/part_product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>

#include "braid/base/errors.h"
#include "braid/layout/product_panels.h"
#include "braid/nn/kernels/amx_registers.h"
#include "braid/nn/kernels/math_type.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/product_bf16.h"
#include "braid/nn/kernels/tile_sums.h"

namespace braid::kernels {
namespace {

constexpr int64_t kStretch = 256;    // inner elements that are packed at a time
constexpr int64_t kTaskRows = 20;    // tiles of a task along the rows
constexpr int64_t kTaskColumns = 8;  // and along the columns
constexpr int64_t kAlignment = 64;   // bytes
constexpr int64_t kTileSums = kTileLanes * kTileColumns;

int64_t tiles_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Inner elements that are packed at a time.
struct Stretch {
  int64_t begin, count;
  bool first, last;  // of its part
};

std::vector<Stretch> stretches(int64_t inner, const InnerParts& parts) {
  const std::vector<int64_t> segments = parts.segments.empty() ? std::vector<int64_t>{inner} : parts.segments;
  check(std::accumulate(segments.begin(), segments.end(), int64_t{0}) == inner, "the segments are the inner dimension");
  std::vector<Stretch> all;
  for (int64_t part = 0; part < parts.count; ++part) {
    const size_t first = all.size();
    int64_t at = 0;
    for (const int64_t extent : segments) {
      const int64_t end = at + part_begin(extent, part + 1, parts.count);
      for (int64_t k = at + part_begin(extent, part, parts.count); k < end; k += kStretch) {
        all.push_back({k, std::min(kStretch, end - k), false, false});
      }
      at += extent;
    }
    if (all.size() == first) all.push_back({0, 0, false, false});
    all[first].first = all.back().last = true;
  }
  return all;
}

// One operand: `lanes` rows or columns.
struct Operand {
  const char* data;
  int64_t lane_stride, inner_stride, lanes, element;

  PanelSource panel(int64_t lane, int64_t width, const Stretch& stretch) const {
    return {data + (lane * lane_stride + stretch.begin * inner_stride) * element, lane_stride, inner_stride,
            std::min(width, lanes - lane), stretch.count};
  }
};

Operand operand(const at::Tensor& x, int lane_dim) {
  const int inner_dim = 1 - lane_dim;
  return {static_cast<const char*>(x.const_data_ptr()), x.size(lane_dim) == 1 ? 1 : x.stride(lane_dim),
          x.size(inner_dim) == 1 ? 1 : x.stride(inner_dim), x.size(lane_dim), x.element_size()};
}

// The results: beta out + sums + bias, of type T.
template <class T>
struct Result {
  T* data;
  int64_t stride;
  const T* bias;
  bool adds;

  template <class M>
  void write(int64_t row, int64_t column, int64_t count, const M* sums) const {
    T* const out = data + row * stride + column;
    if (count == kTileColumns && !bias) return write_row<kTileColumns>(out, sums);
    for (int64_t j = 0; j < count; ++j) {
      M value = sums[j];
      if (bias) value += static_cast<M>(bias[column + j]);
      if (adds) value += static_cast<M>(out[j]);
      out[j] = static_cast<T>(value);
    }
  }
  template <int64_t kCount, class M>
  void write_row(T* out, const M* sums) const {
    if (adds) {
      for (int64_t j = 0; j < kCount; ++j) out[j] = static_cast<T>(static_cast<M>(out[j]) + sums[j]);
    } else {
      for (int64_t j = 0; j < kCount; ++j) out[j] = static_cast<T>(sums[j]);
    }
  }
};

template <class T>
class Product {
 public:
  using M = MathOf<T>;
  Product(const TileKernels& kernels, const Operand& a, const Operand& b, const Result<T>& result)
      : kernels_(kernels), a_(a), b_(b), result_(result) {}

  void run(const std::vector<Stretch>& stretches, int parts) const {
    const int64_t row_step = kTaskRows * kernels_.rows, column_step = kTaskColumns * kernels_.columns;
    const int64_t down = tiles_of(a_.lanes, row_step), across = tiles_of(b_.lanes, column_step);
    at::parallel_for(0, down * across, 1, [&](int64_t begin, int64_t end) {
      const WholeTiles registers;
      Memory memory(kernels_, parts);
      for (int64_t t = begin; t < end; ++t) run_task({t % down * row_step, t / down * column_step}, stretches, memory);
    });
  }

 private:
  // The memory of a thread's task, some 2 MiB. Like that of LibTorch's own products, it is in no account.
  struct Memory {
    std::unique_ptr<char, decltype(&std::free)> storage{nullptr, &std::free};
    char *rows, *columns;
    M* sums;  // by level and tile; the last level is that of the part which is being summed
    int64_t levels = 1;
    int parts;

    Memory(const TileKernels& kernels, int num_parts) : parts(num_parts) {
      while (parts >> levels > 0) ++levels;
      const int64_t lane_bytes = tiles_of(kStretch, kernels.pair) * kernels.packed;
      const int64_t row_bytes = kTileLanes * lane_bytes, column_bytes = kTaskColumns * kTileColumns * lane_bytes;
      const int64_t sum_bytes = (levels + 1) * kTaskRows * kTaskColumns * kTileSums * static_cast<int64_t>(sizeof(M));
      storage.reset(static_cast<char*>(std::aligned_alloc(kAlignment, row_bytes + column_bytes + sum_bytes)));
      if (!storage) throw std::bad_alloc();
      rows = storage.get();
      columns = rows + row_bytes;
      sums = reinterpret_cast<M*>(columns + column_bytes);
    }
    M* tile(int64_t level, int64_t number) const {
      return sums + (level * kTaskRows * kTaskColumns + number) * kTileSums;
    }
  };
  struct Place {
    int64_t row, column;
  };

  void run_task(const Place& first, const std::vector<Stretch>& stretches, Memory& memory) const {
    const int64_t row_end = std::min(a_.lanes, first.row + kTaskRows * kernels_.rows);
    const int64_t column_end = std::min(b_.lanes, first.column + kTaskColumns * kernels_.columns);
    int part = 0;
    for (const Stretch& stretch : stretches) {
      const int64_t depth = tiles_of(stretch.count, kernels_.pair), panel = depth * kernels_.columns * kernels_.packed;
      char* packed = memory.columns;
      for (int64_t column = first.column; column < column_end; column += kernels_.columns, packed += panel) {
        kernels_.pack(b_.panel(column, kernels_.columns, stretch), kernels_.columns, packed);
      }
      int64_t number = 0;
      for (int64_t row = first.row; row < row_end; row += kernels_.rows) {
        kernels_.pack(a_.panel(row, kTileLanes, stretch), kTileLanes, memory.rows);
        packed = memory.columns;
        for (int64_t column = first.column; column < column_end;
             column += kernels_.columns, packed += panel, ++number) {
          add_stretch({memory.rows, packed, depth}, stretch, part, number, memory);
          if (stretch.last && part + 1 == memory.parts) write(memory.tile(memory.levels, number), {row, column});
        }
      }
      part += stretch.last ? 1 : 0;
    }
  }

  // Adds a stretch of a part. A bit of the part's number is set where a tree of that level waits; the last stretch
  // takes up the lower ones, and that of the last part all.
  void add_stretch(const PackedTile& tile, const Stretch& stretch, int part, int64_t number, Memory& memory) const {
    M* const open = memory.tile(memory.levels, number);
    if (!stretch.last) return kernels_.multiply(tile, stretch.first ? nullptr : open, open);
    int level = std::countr_one(static_cast<unsigned>(part));
    M* const to = part + 1 == memory.parts ? open : memory.tile(level, number);
    const bool joins = stretch.first && level > 0;
    kernels_.multiply(tile, stretch.first ? (joins ? memory.tile(0, number) : nullptr) : open, to);
    for (int l = joins ? 1 : 0; l < level; ++l) add_to(to, memory.tile(l, number));
    for (; to == open && part >> level > 0; ++level) {
      if ((part >> level & 1) != 0) add_to(to, memory.tile(level, number));
    }
  }

  static void add_to(M* right, const M* left) {
    for (int64_t i = 0; i < kTileSums; ++i) right[i] = left[i] + right[i];
  }

  void write(const M* sums, const Place& at) const {
    const int64_t count = std::min(kernels_.columns, b_.lanes - at.column);
    for (int64_t r = 0; r < std::min(kernels_.rows, a_.lanes - at.row); ++r) {
      result_.write(at.row + r, at.column, count, sums + r * kernels_.columns);
    }
  }

  const TileKernels& kernels_;
  const Operand a_, b_;
  const Result<T> result_;
};

template <class T>
void run_product(const TileKernels& kernels, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                 const InnerParts& parts, const at::Tensor& bias, double beta) {
  const Result<T> result{out.mutable_data_ptr<T>(), out.stride(0), bias.defined() ? bias.const_data_ptr<T>() : nullptr,
                         beta != 0};
  Product<T>(kernels, operand(a, 0), operand(b, 1), result).run(stretches(a.size(1), parts), parts.count);
}

// Returns x with contiguous rows or contiguous columns.
at::Tensor readable(const at::Tensor& x) {
  const bool rows = x.stride(1) == 1 || x.size(1) == 1, columns = x.stride(0) == 1 || x.size(0) == 1;
  return rows || columns ? x : x.contiguous();
}

// Multiplies types without products of their own as float32. Each panel of columns of b gives whole columns of out.
void product_of_widened(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const InnerParts& parts,
                        const at::Tensor& bias, double beta) {
  const at::Tensor wide_a = a.to(at::kFloat);
  const int64_t columns = std::max<int64_t>(1, layout::kPanelElements / std::max<int64_t>(1, b.size(0)));
  for (int64_t begin = 0; begin < b.size(1); begin += columns) {
    const int64_t count = std::min(columns, b.size(1) - begin);
    product_in_parts(out.narrow(1, begin, count), wide_a, b.narrow(1, begin, count).to(at::kFloat), parts,
                     bias.defined() ? bias.narrow(0, begin, count) : bias, beta);
  }
}

at::Tensor tree_part(const at::Tensor& x, int64_t begin, int64_t count) {
  if (count == 1) return x.select(0, begin);
  const auto left = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - 1)));
  return tree_part(x, begin, left).add(tree_part(x, begin + left, count - left));
}

}  // namespace

void product_in_parts(const at::Tensor& out, const at::Tensor& a_nk, const at::Tensor& b_ko, const InnerParts& parts,
                      const at::Tensor& bias, double beta) {
  check(out.is_cpu() && a_nk.scalar_type() == b_ko.scalar_type(), "operands of one type on a CPU");
  check(a_nk.size(1) == b_ko.size(0) && out.size(0) == a_nk.size(0) && out.size(1) == b_ko.size(1),
        "shapes of one product");
  check(out.stride(1) == 1 || out.size(1) <= 1, "rows of a result are contiguous");
  if (out.numel() == 0) return;
  const at::Tensor a = readable(a_nk), b = readable(b_ko);
  const at::ScalarType type = a.scalar_type();
  if (type == at::kDouble) {
    return run_product<double>(best_kernels<PlainTileKernels<double>>(), out, a, b, parts, bias, beta);
  }
  const bool pairs = type == at::kBFloat16 && has_product_bf16();
  if (type != at::kFloat && !pairs) return product_of_widened(out, a, b, parts, bias, beta);
  const TileKernels& kernels = pairs ? pair_tiles() : best_kernels<PlainTileKernels<float>>();
  switch (out.scalar_type()) {
    case at::kFloat:
      return run_product<float>(kernels, out, a, b, parts, bias, beta);
    case at::kBFloat16:
      return run_product<c10::BFloat16>(kernels, out, a, b, parts, bias, beta);
    case at::kHalf:
      return run_product<c10::Half>(kernels, out, a, b, parts, bias, beta);
    default:
      check(false, "a result of the operands' type or float32");
  }
}

at::Tensor tree_sum(const at::Tensor& x) { return tree_part(x, 0, x.size(0)); }

}  // namespace braid::kernels
