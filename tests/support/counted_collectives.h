// A communicator that counts what is asked of another one.
#pragma once

#include "tests/support/wrapped_communicator.h"

namespace braid {

class CountedCollectives final : public WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;

  int all_reduces() const { return all_reduces_; }
  int64_t reduced_elements() const { return reduced_elements_; }
  int gathers() const { return gathers_; }
  int64_t gathered_elements() const { return gathered_elements_; }  // of all ranks
  int scatters() const { return scatters_; }
  int64_t scattered_elements() const { return scattered_elements_; }  // of all ranks
  // The bytes of these calls, of all ranks in gathers and scatters.
  int64_t reduced_bytes() const { return reduced_bytes_; }
  int64_t gathered_bytes() const { return gathered_bytes_; }
  int64_t scattered_bytes() const { return scattered_bytes_; }
  int64_t sent_elements() const { return sent_elements_; }  // point to point

  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override {
    ++all_reduces_;
    reduced_elements_ += tensor.numel();
    reduced_bytes_ += static_cast<int64_t>(tensor.nbytes());
    return inner().all_reduce(tensor, op);
  }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    ++scatters_;
    scattered_elements_ += in.numel();
    scattered_bytes_ += static_cast<int64_t>(in.nbytes());
    return inner().reduce_scatter(out, in, op);
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override {
    ++gathers_;
    gathered_elements_ += out.numel();
    gathered_bytes_ += static_cast<int64_t>(out.nbytes());
    return inner().all_gather(out, in);
  }
  Work batch(std::span<const P2p> transfers) override {
    for (const P2p& each : transfers) {
      if (each.kind == P2p::Kind::Send) sent_elements_ += each.tensor.numel();
    }
    return inner().batch(transfers);
  }

 private:
  int all_reduces_ = 0, gathers_ = 0, scatters_ = 0;
  int64_t reduced_bytes_ = 0, gathered_bytes_ = 0, scattered_bytes_ = 0;
  int64_t reduced_elements_ = 0, gathered_elements_ = 0, scattered_elements_ = 0, sent_elements_ = 0;
};

}  // namespace braid
