// Lossy messages: what a compressor says of one run of gradients, and what is heard.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/sync/grad_reducer.h"

namespace braid::sync {

// Error feedback: the compression error becomes the next step's residual and is added to its gradients.
// Source: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression Schemes" (ICML 2019),
// algorithm 2.
class ErrorFeedback {
 public:
  // Zero at first; a later plan of the same slices keeps it.
  void plan(const GradLayout& layout);
  // Parallel to the flat gradients.
  at::Tensor of(const BucketShape& bucket) const { return flat_.narrow(0, bucket.begin, bucket.end - bucket.begin); }
  at::Tensor of(const GradSlice& slice, const ElementRun& run) const {
    return flat_.narrow(0, slice.begin + run.begin, run.end - run.begin);
  }
  // The slice in its parameter's shape.
  at::Tensor of(const GradSlice& slice) const;
  // The residual of every slice for which `keeps` holds.
  template <class Keeps>
  std::vector<ReducerState> state(const std::vector<BucketShape>& buckets, const Keeps& keeps) const {
    std::vector<ReducerState> all;
    for (const BucketShape& bucket : buckets) {
      for (const GradSlice& slice : bucket.slices) {
        if (keeps(slice)) all.push_back({ReducerState::Kind::Residual, slice.name, of(slice)});
      }
    }
    return all;
  }

 private:
  at::Tensor flat_;
};

// Calls a function template on a tensor's raw elements, float or double: the types gradients have.

// call(T* elements) with T the tensor's type.
template <class Call>
void with_elements(const at::Tensor& tensor, const Call& call) {
  if (tensor.scalar_type() == at::kDouble) {
    call(tensor.mutable_data_ptr<double>());
  } else {
    call(tensor.mutable_data_ptr<float>());
  }
}

// Tensors are contiguous, one dim, float32 or float64. On the wire values are float32. NaN or infinity in a run comes
// out as some NaN or infinity of the same run, so that a run that diverges is noticed. Zeros beyond a run's end are not
// its business: runs hold no padding.
class Codec {
 public:
  virtual ~Codec() = default;
  // Returns the bytes of the message for `count` elements, which depend on nothing else.
  virtual int64_t num_bytes(int64_t count) const = 0;
  // Writes num_bytes() to `message` and takes off `values` what it says: what is left has not been told.
  virtual void encode(const at::Tensor& values, std::byte* message) const = 0;
  // sum += what the message says; the same bits wherever it is heard.
  virtual void add(const std::byte* message, const at::Tensor& sum) const = 0;
};

}  // namespace braid::sync
