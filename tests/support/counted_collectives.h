// A communicator that counts what is asked of another one.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "braid/comm/communicator.h"

namespace braid {

class CountedCollectives final : public Communicator {
 public:
  explicit CountedCollectives(Communicator& inner) : inner_(inner) {}

  int all_reduces() const { return all_reduces_; }
  int64_t reduced_elements() const { return reduced_elements_; }
  int gathers() const { return gathers_; }
  int64_t gathered_elements() const { return gathered_elements_; }  // of all ranks
  int scatters() const { return scatters_; }
  int64_t scattered_elements() const { return scattered_elements_; }  // of all ranks
  int64_t sent_elements() const { return sent_elements_; }            // point to point

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& name() const override { return inner_.name(); }
  RankKind rank_kind() const override { return inner_.rank_kind(); }
  Queue& queue() override { return inner_.queue(); }
  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override {
    ++all_reduces_;
    reduced_elements_ += tensor.numel();
    return inner_.all_reduce(tensor, op);
  }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    ++scatters_;
    scattered_elements_ += in.numel();
    return inner_.reduce_scatter(out, in, op);
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override {
    ++gathers_;
    gathered_elements_ += out.numel();
    return inner_.all_gather(out, in);
  }
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) override { return inner_.all_to_all(out, in); }
  Work broadcast(const at::Tensor& tensor, int root) override { return inner_.broadcast(tensor, root); }
  Work barrier() override { return inner_.barrier(); }
  Work batch(std::span<const P2p> transfers) override {
    for (const P2p& each : transfers) {
      if (each.kind == P2p::Kind::Send) sent_elements_ += each.tensor.numel();
    }
    return inner_.batch(transfers);
  }
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override {
    return inner_.split(colour, key, std::move(name));
  }
  std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) override {
    return inner_.make_channels(numbers, num_endpoints);
  }
  void abort(const std::string& why) override { inner_.abort(why); }

 private:
  Communicator& inner_;
  int all_reduces_ = 0, gathers_ = 0, scatters_ = 0;
  int64_t reduced_elements_ = 0, gathered_elements_ = 0, scattered_elements_ = 0, sent_elements_ = 0;
};

}  // namespace braid
