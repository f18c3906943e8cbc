// The initial values. Each piece is filled in runs along the last dim, so that normal numbers are drawn in batches.
#include "braid/param/initial_values.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "braid/base/seeds.h"

namespace braid::param {
namespace {

constexpr int64_t kGrain = 8192;  // elements

// Consecutive elements, both in the flattened global and in the flattened local tensor.
struct Run {
  int64_t global, local, count;
};

// Returns the run that starts at element `at` of the piece (in the piece's own row-major order) and ends with its row.
Run run_at(const mesh::Placement& placement, const mesh::Piece& piece, int64_t at) {
  const int last = static_cast<int>(placement.global_shape.size()) - 1;
  Run run{0, 0, 1};
  int64_t global_stride = 1, local_stride = 1;
  for (int d = last; d >= 0; --d) {
    const int64_t extent = piece.global.end[d] - piece.global.begin[d];
    const int64_t i = at % extent;
    at /= extent;
    if (d == last) run.count = extent - i;
    run.global += (piece.global.begin[d] + i) * global_stride;
    run.local += (piece.local_begin[d] + i) * local_stride;
    global_stride *= placement.global_shape[d];
    local_stride *= placement.local_shape[d];
  }
  return run;
}

template <class T>
void fill_normal(T* out, const Run& run, uint64_t key, double std) {
  constexpr int64_t kBatch = 4 * kNormalBlocks;
  double batch[kBatch];
  const int64_t end = run.global + run.count;
  for (int64_t i = run.global; i < end;) {
    const int64_t first = i / 4 * 4;
    normal_blocks(key, first / 4, batch);
    for (const int64_t stop = std::min(end, first + kBatch); i < stop; ++i) {
      out[i - run.global] = static_cast<T>(std * batch[i - first]);
    }
  }
}

template <class T>
void fill(Parameter& param, uint64_t key) {
  T* data = param.master.mutable_data_ptr<T>();
  for (const mesh::Piece& piece : param.placement.pieces) {
    at::parallel_for(0, piece.global.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end;) {
        Run run = run_at(param.placement, piece, at);
        run.count = std::min(run.count, end - at);
        if (param.init.kind == model::Init::Kind::Normal) {
          fill_normal(data + run.local, run, key, param.init.std);
        } else {
          std::fill_n(data + run.local, run.count, param.init.kind == model::Init::Kind::Ones ? T{1} : T{0});
        }
        at += run.count;
      }
    });
  }
}

}  // namespace

void fill_initial_values(Parameter& param, uint64_t seed) {
  const uint64_t key = stream_key(seed, param.name);
  if (param.master.scalar_type() == at::kDouble) {
    fill<double>(param, key);
  } else {
    fill<float>(param, key);
  }
}

}  // namespace braid::param
