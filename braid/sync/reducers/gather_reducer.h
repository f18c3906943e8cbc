// Compressed gradients with error feedback: every rank tells all others what its codec makes of (gradient + residual),
// and everybody adds up all messages in the order of the ranks. The codec works slice by slice.
#pragma once

#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/sync/reducers/codec.h"
#include "braid/sync/reducers/error_feedback.h"

namespace braid::sync {

class GatherReducer final : public GradReducer {
 public:
  // `group` outlives this.
  GatherReducer(Communicator& group, std::unique_ptr<Codec> codec) : group_(group), codec_(std::move(codec)) {}

  void plan(const GradLayout& layout) override;
  void start(int bucket, const at::Tensor& grads) override;
  void finish(int bucket) override;
  int64_t bytes_sent() const override { return bytes_sent_; }
  std::vector<ReducerState> state() override;

 private:
  struct Flight {
    at::Tensor inbox;  // bytes: one message per rank, of all runs one after another
    at::Tensor grads;
    Work work;
  };
  std::byte* message(Flight& flight, int rank) const;

  Communicator& group_;
  const std::unique_ptr<Codec> codec_;
  ErrorFeedback residual_;
  std::vector<BucketShape> buckets_;
  std::vector<Flight> flights_;  // by bucket
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
