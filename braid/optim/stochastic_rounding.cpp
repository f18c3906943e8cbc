// The random bits of each element, in runs along the last dim.
#include "braid/optim/stochastic_rounding.h"

#include <algorithm>

#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/mesh/flat_range.h"

namespace braid::optim {
namespace {

constexpr int64_t kRoundedBlock = param::ParamStore::kAlign;
constexpr int kBatch = 16;  // blocks of Philox that are computed together

// Merges trailing dims that every piece covers into the last dim that a piece splits, so that runs are long.
mesh::Placement with_merged_dims(const mesh::Placement& whole) {
  size_t last = 0;
  for (const mesh::Piece& piece : whole.pieces) {
    for (size_t d = 0; d < whole.global_shape.size(); ++d) {
      const int64_t extent = piece.global.end[d] - piece.global.begin[d];
      if (extent != whole.global_shape[d] || extent != whole.local_shape[d]) last = std::max(last, d);
    }
  }
  int64_t unit = 1;
  for (size_t d = last + 1; d < whole.global_shape.size(); ++d) unit *= whole.global_shape[d];
  const auto merge = [&](mesh::Index& numbers) {
    numbers.resize(last + 1, 1);  // a tensor without dims has one element
    numbers[last] *= unit;
  };
  mesh::Placement merged = whole;
  for (mesh::Index* shape : {&merged.global_shape, &merged.local_shape}) merge(*shape);
  for (mesh::Piece& piece : merged.pieces) {
    if (whole.global_shape.empty()) piece = {{{0}, {1}}, {0}};
    for (mesh::Index* place : {&piece.global.begin, &piece.global.end, &piece.local_begin}) merge(*place);
  }
  return merged;
}

// Writes the words of `kBatch` blocks of a stream from `first` on: philox_words() in loops that vectorise.
void draw_batch(uint64_t key, uint64_t step, uint64_t first, uint32_t* words) {
  uint32_t c[4][kBatch];
  for (int j = 0; j < kBatch; ++j) {
    const uint64_t block = first + static_cast<uint64_t>(j);
    c[0][j] = static_cast<uint32_t>(block), c[1][j] = static_cast<uint32_t>(block >> 32);
    c[2][j] = static_cast<uint32_t>(step), c[3][j] = static_cast<uint32_t>(step >> 32);
  }
  uint32_t low_key = static_cast<uint32_t>(key), high_key = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int j = 0; j < kBatch; ++j) {
      const uint64_t x = uint64_t{0xD2511F53} * c[0][j], y = uint64_t{0xCD9E8D57} * c[2][j];
      const uint32_t second = c[1][j], fourth = c[3][j];
      c[0][j] = static_cast<uint32_t>(y >> 32) ^ second ^ low_key, c[1][j] = static_cast<uint32_t>(y);
      c[2][j] = static_cast<uint32_t>(x >> 32) ^ fourth ^ high_key, c[3][j] = static_cast<uint32_t>(x);
    }
    low_key += 0x9E3779B9, high_key += 0xBB67AE85;
  }
  for (int j = 0; j < kBatch; ++j) {
    for (int i = 0; i < 4; ++i) words[4 * j + i] = c[i][j];
  }
}

// Writes the words of elements [first, first + count) of a stream. A block of Philox has those of four elements.
void draw_run(uint64_t key, uint64_t step, int64_t first, int64_t count, uint32_t* words) {
  constexpr int64_t kDrawn = 4 * kBatch;
  uint32_t some[kDrawn];
  const int64_t end = first + count;
  for (int64_t i = first; i < end;) {
    const int64_t block = i / 4, stop = std::min(end, 4 * block + kDrawn);
    if (i % 4 == 0 && stop - i == kDrawn) {
      draw_batch(key, step, static_cast<uint64_t>(block), words + (i - first));
    } else {
      draw_batch(key, step, static_cast<uint64_t>(block), some);
      std::copy(some + i % 4, some + (stop - 4 * block), words + (i - first));
    }
    i = stop;
  }
}

// Calls run(global index, local index, count) for the elements of `piece` among elements [begin, end) of the local
// tensor, row by row.
template <class Run>
void for_each_run(const mesh::Placement& placement, const mesh::Piece& piece, mesh::ElementRun range, const Run& run) {
  const size_t last = placement.local_shape.size() - 1;
  const int64_t width = placement.local_shape[last];
  for (int64_t row = range.begin / width; row * width < range.end; ++row) {
    int64_t rest = row, global = piece.global.begin[last], stride = placement.global_shape[last];
    bool inside = true;
    for (size_t d = last; d-- > 0;) {
      const int64_t at = rest % placement.local_shape[d] - piece.local_begin[d] + piece.global.begin[d];
      rest /= placement.local_shape[d];
      inside = inside && at >= piece.global.begin[d] && at < piece.global.end[d];
      global += at * stride;
      stride *= placement.global_shape[d];
    }
    if (!inside) continue;
    const int64_t first = row * width + piece.local_begin[last];
    const int64_t from = std::max(range.begin, first);
    const int64_t to = std::min(range.end, first + piece.global.end[last] - piece.global.begin[last]);
    if (from < to) run(global + from - first, from, to - from);
  }
}

}  // namespace

StochasticRounding::StochasticRounding(const param::ParamStore& store) {
  for (const param::Parameter& param : store.params()) {
    slices_.push_back({param.offset, stream_key(store.seed(), cat("optimizer.state_dtype/", param.name)),
                       with_merged_dims(param.placement)});
  }
}

void StochasticRounding::draw(int64_t block, int64_t step, uint32_t* words) const {
  std::fill_n(words, kRoundedBlock, 0);
  const auto next = std::ranges::upper_bound(slices_, block * kRoundedBlock, {}, &Slice::begin);
  if (next == slices_.begin()) return;
  const Slice& slice = *std::prev(next);
  const int64_t begin = block * kRoundedBlock - slice.begin;
  const int64_t end = std::min(begin + kRoundedBlock, mesh::num_elements(slice.placement.local_shape));
  for (const mesh::Piece& piece : slice.placement.pieces) {
    for_each_run(slice.placement, piece, {begin, end}, [&](int64_t global, int64_t local, int64_t count) {
      draw_run(slice.key, static_cast<uint64_t>(step), global, count, words + (local - begin));
    });
  }
}

void widen_block(const Bf16* __restrict__ from, float* __restrict__ to) {
  for (int64_t i = 0; i < kRoundedBlock; ++i) to[i] = widen(from[i]);
}

void round_block(const float* __restrict__ from, const uint32_t* __restrict__ words, int state, Bf16* __restrict__ to) {
  const int shift = 16 * state;
  for (int64_t i = 0; i < kRoundedBlock; ++i) to[i] = narrow_randomly(from[i], (words[i] >> shift) & 0xffffu);
}

}  // namespace braid::optim
