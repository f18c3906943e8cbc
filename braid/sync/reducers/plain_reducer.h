// Gradients as they are: one all-reduce per bucket. In reproducible mode it continues the tree over microbatches.
#pragma once

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/sync/grad_reducer.h"

namespace braid::sync {

class PlainReducer final : public GradReducer {
 public:
  // `group` outlives this.
  explicit PlainReducer(Communicator& group) : group_(group) {}

  void plan(const GradLayout& layout) override;
  void start(int bucket, const at::Tensor& grads) override;
  void finish(int bucket) override;
  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  Communicator& group_;
  std::vector<Work> works_;  // by bucket
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
