// Error feedback: the compression error becomes the next step's residual and is added to its gradients.
// Source: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression Schemes" (ICML 2019),
// algorithm 2.
#pragma once

#include <vector>

#include "braid/sync/grad_reducer.h"

namespace braid::sync {

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

}  // namespace braid::sync
