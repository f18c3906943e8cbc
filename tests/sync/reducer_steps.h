// Gradients of a few odd slices, and steps of a reducer on them.
#pragma once

#include <ATen/ops/zeros.h>

#include <mutex>
#include <numeric>
#include <vector>

#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/sync/grad_reducer.h"

namespace braid::sync::tests {

inline constexpr int64_t kAlign = 1024;  // as ParamStore lays slices out

struct NamedShape {
  const char* name;
  std::vector<int64_t> shape;
};

inline const std::vector<NamedShape> kShapes = {
    {"matrix", {40, 30}}, {"bias", {30}}, {"filter", {8, 5, 5}}, {"scalar", {1}}, {"long", {2500}}};

inline int64_t num_elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}
inline int64_t aligned(int64_t elements) { return (elements + kAlign - 1) / kAlign * kAlign; }

// The slices one after another in the flat buffer; buckets of `slices_each` from its end.
inline GradLayout layout(const std::vector<NamedShape>& shapes, size_t slices_each, at::ScalarType type = at::kDouble) {
  GradLayout all{at::TensorOptions(type), {}};
  int64_t end = 0;
  for (const NamedShape& each : shapes) end += aligned(num_elements(each.shape));
  for (size_t i = shapes.size(); i-- > 0;) {
    const int64_t count = num_elements(shapes[i].shape), begin = end - aligned(count);
    if (all.buckets.empty() || all.buckets.back().slices.size() == slices_each) {
      all.buckets.push_back({begin, end, {}});
    }
    all.buckets.back().begin = begin;
    all.buckets.back().slices.push_back({shapes[i].name, begin, shapes[i].shape, {{0, count}}});
    end = begin;
  }
  return all;
}

inline int64_t num_flat(const GradLayout& layout) {
  int64_t size = 0;
  for (const BucketShape& bucket : layout.buckets) size = std::max(size, bucket.end);
  return size;
}

inline void set(const at::Tensor& tensor, int64_t i, double value) {
  if (tensor.scalar_type() == at::kDouble) {
    tensor.mutable_data_ptr<double>()[i] = value;
  } else {
    tensor.mutable_data_ptr<float>()[i] = static_cast<float>(value);
  }
}

// Returns the gradients of `rank` in `step`: numbers of several magnitudes, zero between slices.
inline at::Tensor gradients(const GradLayout& layout, int rank, int64_t step) {
  at::Tensor flat = at::zeros({num_flat(layout)}, layout.options);
  for (const BucketShape& bucket : layout.buckets) {
    for (const GradSlice& slice : bucket.slices) {
      const uint64_t key = stream_key(7, cat(slice.name, "/", rank, "/", step));
      for (int64_t i = 0; i < num_elements(slice.shape); ++i) {
        set(flat, slice.begin + i, (2 * uniform(key, i) - 1) * (i % 7 == 0 ? 3 : 0.1));
      }
    }
  }
  return flat;
}

// One step: `flat` becomes what the reducer makes of its sum.
inline void reduce(GradReducer& reducer, const GradLayout& layout, const at::Tensor& flat, int64_t step) {
  reducer.begin_step(step);
  const int num_buckets = static_cast<int>(layout.buckets.size());
  for (int b = 0; b < num_buckets; ++b) {
    const BucketShape& bucket = layout.buckets[b];
    reducer.start(b, flat.narrow(0, bucket.begin, bucket.end - bucket.begin));
  }
  for (int b = 0; b < num_buckets; ++b) reducer.advance(b);
  for (int b = 0; b < num_buckets; ++b) reducer.finish(b);
}

// Runs `body(communicator)` on every rank; what it returns, by rank.
template <class Body>
auto by_rank(int ranks, const Body& body) {
  std::vector<decltype(body(std::declval<Communicator&>()))> results(ranks);
  std::mutex lock;
  run_ranks(ranks, [&](Communicator& world) {
    auto mine = body(world);
    const std::scoped_lock hold(lock);
    results[world.rank()] = std::move(mine);
  });
  return results;
}

}  // namespace braid::sync::tests
