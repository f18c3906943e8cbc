// The kernels of a model's block, timed in the order of a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/nn/attention.h"
#include "braid/nn/kernels/norm.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// A layer of weights, its input and the gradient of its output; what it computes lies in memory of its own.
class TimedLinear {
 public:
  TimedLinear(int64_t tokens, int64_t in, int64_t out, at::ScalarType dtype, at::Device device);

  double flops() const;  // of one pass
  double weights() const { return static_cast<double>(slot_oi_.numel()); }
  void forward();
  void backward();

  double seconds = 0;               // of the round at hand
  std::vector<double> all_seconds;  // of each round

 private:
  at::Tensor x_ni_, weight_oi_, y_no_, dx_ni_, slot_oi_;
};

class TimedAttention {
 public:
  TimedAttention(const RunSpec& spec, at::Device device);

  void round();
  double context() const;
  // Operations a second, medians of the rounds.
  double forward_rate() const;
  double backward_rate() const;
  double seconds() const;  // there and back, by the same medians

 private:
  nn::CoreCall call_;
  at::Tensor qkv_, dy_;
  double flops_ = 0;
  std::vector<double> forward_, backward_;
};

// Two norms with the sums before them, and the activation.
class TimedElements {
 public:
  TimedElements(const RunSpec& spec, at::Device device);

  void round();
  double bytes() const { return bytes_; }  // read and written in a round
  double tensor_bytes() const;             // of a hidden state
  double bytes_per_second() const;         // the median of the rounds

 private:
  bool gated_;
  at::Tensor x_nh_, bias_f_, inner_, dy_nf_;
  kernels::NormParams norm_;
  double bytes_ = 0;
  std::vector<double> seconds_;
};

// Without what lies between its products: each weight is cold when its turn comes, as in training. What it holds is
// unaccounted memory.
class TimedBlock {
 public:
  // A microbatch of `spec` on one of its tensor ranks. `ranks` outlives this.
  TimedBlock(const RunSpec& spec, at::Device device, Communicator& ranks);

  // Each returns its seconds.
  double round();
  double round_in_step();  // with a sum over the ranks wherever tensor ranks have one; collective
  double sums();           // these alone; collective

  // Returns the time of a round's products and attention, by the medians of the rounds.
  double product_seconds() const;

  const std::vector<TimedLinear>& layers() const { return layers_; }
  const TimedAttention& attention() const { return attention_; }
  const TimedElements& elements() const { return elements_; }

 private:
  template <class Sum>
  double seconds_of(const Sum& sum);
  void sum();

  std::vector<TimedLinear> layers_;
  TimedAttention attention_;
  TimedElements elements_;
  at::Tensor hidden_nh_;
  Communicator& ranks_;
};

}  // namespace braid::train
