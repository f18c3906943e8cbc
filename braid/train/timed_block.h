// The kernels of a transformer block, timed in the order of a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/model/graph.h"
#include "braid/nn/attention.h"
#include "braid/nn/kernels/norm.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// A linear layer: its weights, its input and the gradient of its output. Its results have their own memory.
class TimedLinear {
 public:
  TimedLinear(int64_t tokens, int64_t in, int64_t out, at::ScalarType dtype, at::Device device);

  double flops() const;  // operations of one pass
  double weights() const { return static_cast<double>(slot_oi_.numel()); }
  void forward();
  void backward();

  int forward_sums = 0, backward_sums = 0;  // all-reduces over tensor ranks behind it in each pass

  double seconds = 0;               // time in the current round
  std::vector<double> all_seconds;  // time in each complete round

 private:
  at::Tensor x_ni_, weight_oi_, y_no_, dx_ni_, slot_oi_;
};

// The attention core of a block, that of a model's first layer. A round is one forward and one backward.
class TimedAttention {
 public:
  TimedAttention(const RunSpec& spec, at::Device device);

  void round();
  double context() const;
  // Return medians over the rounds, in operations per second.
  double forward_rate() const;
  double backward_rate() const;
  double seconds() const;  // median of forward plus median of backward

 private:
  nn::CoreCall call_;
  at::Tensor qkv_, dy_;
  double flops_ = 0;
  std::vector<double> forward_, backward_;
};

// The elementwise kernels of a layer: its norms with the residual sums before them, and the activation.
class TimedElements {
 public:
  TimedElements(const RunSpec& spec, at::Device device);

  void round();
  double bytes() const { return bytes_; }  // bytes read and written in a round
  double tensor_bytes() const;             // bytes of a hidden state
  double bytes_per_second() const;         // median over the rounds

 private:
  void activation();

  model::OpKind activation_;  // SwiGlu, GeGlu, or Gelu or GeluErf with a bias
  int num_norms_;
  at::Tensor x_nh_, bias_f_, inner_, dy_nf_;
  kernels::NormParams norm_;
  double bytes_ = 0;
  std::vector<double> seconds_;
};

// The kernels of a block, without the operations between them. Each weight has left the caches when its turn comes, as
// in training. No account of memory counts its tensors.
class TimedBlock {
 public:
  // The block runs a microbatch of `spec` on one of its tensor ranks. `ranks` outlives this.
  TimedBlock(const RunSpec& spec, at::Device device, Communicator& ranks);

  // Each of these returns its seconds.
  double round();
  double round_in_step();  // a round with the all-reduces of tensor ranks; collective
  double sums();           // only the all-reduces of round_in_step(); collective

  // Returns the time of a round's products and attention, by the medians of the rounds.
  double product_seconds() const;

  const std::vector<TimedLinear>& layers() const { return layers_; }
  const TimedAttention& attention() const { return attention_; }
  const TimedElements& elements() const { return elements_; }

 private:
  template <class Sum>
  double seconds_of(const Sum& sum);
  void sum(int times);

  std::vector<TimedLinear> layers_;
  TimedAttention attention_;
  TimedElements elements_;
  at::Tensor hidden_nh_;
  Communicator& ranks_;
};

}  // namespace braid::train
