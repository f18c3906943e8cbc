// A pipeline of stages whose work is plain arithmetic on small tensors, for tests of whatever calls a StageExecutor.
//
//   forward   stage s, micro k:  out = 3 in + s           (the first stage's in is k)
//   backward  stage s, micro k:  din = 3 dout + s         (the last stage's dout is its output)
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "braid/pipe/stage_executor.h"
#include "braid/schedule/action.h"

namespace braid {

class FakeStages : public pipe::StageExecutor {
 public:
  FakeStages(int num_stages, int64_t elements) : num_stages_(num_stages), elements_(elements) {}

  std::vector<Action> ran;                              // compute ops in the order they were asked for
  std::map<std::pair<int, int>, float> first_gradient;  // (stage, micro) -> value of the input gradient

  void forward(int stage, int micro) override {
    ran.push_back({Op::Forward, stage, micro});
    auto& flight = at(stage, micro);
    if (stage == 0) flight.input = filled(static_cast<float>(micro));
    flight.output = mapped(flight.input, stage);
    if (stage == num_stages_ - 1) flight.output_gradient = flight.output;
  }
  void full_backward(int stage, int micro) override {
    ran.push_back({Op::FullBackward, stage, micro});
    backward(stage, micro);
  }
  void input_grad(int stage, int micro) override {
    ran.push_back({Op::InputGrad, stage, micro});
    backward(stage, micro);
  }
  void weight_grad(int stage, int micro) override { ran.push_back({Op::WeightGrad, stage, micro}); }
  void reduce_grad(int stage) override { ran.push_back({Op::ReduceGrad, stage, -1}); }
  void recompute(int stage, int micro) override { ran.push_back({Op::Recompute, stage, micro}); }
  void update(int stage, int micro) override { ran.push_back({Op::Update, stage, micro}); }

  Tensors outputs(int stage, int micro) override { return {at(stage, micro).output}; }
  Tensors input_gradients(int stage, int micro) override { return {at(stage, micro).input_gradient}; }
  Tensors input_buffers(int stage, int micro) override { return {at(stage, micro).input = empty()}; }
  Tensors output_gradient_buffers(int stage, int micro) override {
    return {at(stage, micro).output_gradient = empty()};
  }
  void give_inputs(int stage, int micro, Tensors tensors) override { at(stage, micro).input = tensors.at(0); }
  void give_output_gradients(int stage, int micro, Tensors tensors) override {
    at(stage, micro).output_gradient = tensors.at(0);
  }

  // The value of (stage, micro)'s input gradient as one rank would compute it.
  static float expected_gradient(int num_stages, int stage, int micro) {
    float value = static_cast<float>(micro);
    for (int s = 0; s < num_stages; ++s) value = 3 * value + static_cast<float>(s);
    for (int s = num_stages - 1; s >= stage; --s) value = 3 * value + static_cast<float>(s);
    return value;
  }

 private:
  struct InFlight {
    at::Tensor input, output, output_gradient, input_gradient;
  };

  InFlight& at(int stage, int micro) { return in_flight_[{stage, micro}]; }
  at::Tensor empty() const { return at::empty({elements_}, at::kFloat); }
  at::Tensor filled(float value) const {
    auto tensor = empty();
    float* p = tensor.mutable_data_ptr<float>();
    for (int64_t i = 0; i < elements_; ++i) p[i] = value;
    return tensor;
  }
  at::Tensor mapped(const at::Tensor& in, int stage) const {
    auto out = empty();
    const float* from = in.const_data_ptr<float>();
    float* to = out.mutable_data_ptr<float>();
    for (int64_t i = 0; i < elements_; ++i) to[i] = 3 * from[i] + static_cast<float>(stage);
    return out;
  }
  void backward(int stage, int micro) {
    auto& flight = at(stage, micro);
    flight.input_gradient = mapped(flight.output_gradient, stage);
    const float* p = flight.input_gradient.const_data_ptr<float>();
    for (int64_t i = 1; i < elements_; ++i) ASSERT_EQ(p[i], p[0]);
    first_gradient[{stage, micro}] = p[0];
  }

  int num_stages_;
  int64_t elements_;
  std::map<std::pair<int, int>, InFlight> in_flight_;
};

}  // namespace braid
