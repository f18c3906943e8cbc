// A block that executes the calls that its ops were lowered to (lower.h).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "braid/comm/op_name.h"
#include "braid/nn/activation.h"
#include "braid/nn/block.h"

namespace braid::nn {

// The values of a block in one forward, by their numbers.
using Frame = std::vector<Activation>;

// One step of a forward: it reads some values of the frame and writes others.
struct Call {
  using Run = std::function<void(Frame& frame, const Microbatch& microbatch)>;
  Run run;
  std::vector<int> uses;  // the values that it reads or writes
  comm::OpName op = {};   // the op whose communication it makes
};

class GraphBlock final : public Block {
 public:
  // `num_values`: of the frame. `input` and `output` are those of the block.
  struct Values {
    int num_values = 0, input = 0, output = 0;
  };
  GraphBlock(std::vector<Call> calls, const Values& values);

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) override;

 private:
  std::vector<Call> calls_;
  std::vector<std::vector<int>> done_;  // by call: the values that no later call uses, dropped after it
  Values values_;
};

}  // namespace braid::nn
