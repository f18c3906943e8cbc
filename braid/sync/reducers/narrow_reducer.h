// A reducer that sends gradients rounded to 16 bits, half the bytes. The sum is formed in float32 and rounded once more
// (communicator.h). The rounding error is not fed back.
//
// float16 saturates. With n ranks, finite values beyond float16_limit(n) become that limit, so a sum of finite
// gradients is finite. Infinities and NaN stay, so that the loss scaler detects them.
#pragma once

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/sync/grad_reducer.h"

namespace braid::sync {

enum class WireType { BFloat16, Float16 };

// Returns the largest float16 of which `ranks` add up to at most 65504, the largest finite float16.
float float16_limit(int ranks);

class NarrowReducer final : public GradReducer {
 public:
  // `group` outlives this.
  NarrowReducer(Communicator& group, WireType wire) : group_(group), wire_(wire) {}

  void plan(const GradLayout& layout) override;
  void start(int bucket, const at::Tensor& grads) override;
  void finish(int bucket) override;
  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  struct Flight {
    at::Tensor wire, grads;
    Work work;
  };

  Communicator& group_;
  const WireType wire_;
  std::vector<Flight> flights_;  // by bucket
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
