// Lossy encoding of gradients into messages, with error feedback.
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
  // Sets the layout. The residuals are zero at first; a later layout, of the same slices, keeps them.
  void plan(const GradLayout& layout);
  // Return the residual of a bucket, or of a run of a slice, as a 1-D view. Residuals lie as the flat gradients do.
  at::Tensor of(const BucketShape& bucket) const { return flat_.narrow(0, bucket.begin, bucket.end - bucket.begin); }
  at::Tensor of(const GradSlice& slice, const mesh::ElementRun& run) const {
    return flat_.narrow(0, slice.begin + run.begin, run.end - run.begin);
  }
  // Returns the residual of a slice, in its parameter's shape.
  at::Tensor of(const GradSlice& slice) const;
  // Returns the residual of every slice for which keeps(slice) is true.
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

// Calls call(T* elements) with a tensor's raw elements. T is the tensor's type, float or double: the types that
// gradients have.
template <class Call>
void with_elements(const at::Tensor& tensor, const Call& call) {
  if (tensor.scalar_type() == at::kDouble) {
    call(tensor.mutable_data_ptr<double>());
  } else {
    call(tensor.mutable_data_ptr<float>());
  }
}

// A lossy encoding of gradients. Tensors are contiguous, 1-D, float32 or float64. Values in messages are float32. A NaN
// or infinity in a run is decoded as some NaN or infinity of the same run, so that divergence is detected. Runs hold no
// padding.
class Codec {
 public:
  virtual ~Codec() = default;
  // Returns the bytes of the message for `count` elements, which depend on `count` only.
  virtual int64_t num_bytes(int64_t count) const = 0;
  // Writes num_bytes() to `message`, and subtracts what it decodes to from `values`. What remains in `values` is the
  // compression error.
  virtual void encode(const at::Tensor& values, std::byte* message) const = 0;
  // Adds the decoded message to `sum`, with the same bits on every rank.
  virtual void add(const std::byte* message, const at::Tensor& sum) const = 0;
};

}  // namespace braid::sync
