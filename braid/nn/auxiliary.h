// Contributions of a block beside its hidden state: auxiliary losses and counts. A router balances its experts with one
// and reports their load with the other. Neither is sent between stages.
//
//   objective of a microbatch = loss of the head + sum over blocks of coefficient x auxiliary loss
//
// An auxiliary loss is one more root of the backward of the graph it was made in, seeded with its coefficient times the
// seed of the head's loss. What follows from it for hidden state and weights therefore comes out of the block's
// ordinary backward, under any schedule. A loss that is no mean over tokens depends on train.microbatch: it is of one
// microbatch at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace braid::nn {

struct AuxiliaryLoss {
  std::string name;        // one that the block's BlockSpec lists; handed in once per microbatch
  at::Tensor value;        // a scalar with its graph, the same on all ranks of the tensor axis
  double coefficient = 1;  // in the objective; what is reported is `value` alone
};

struct AuxiliaryCount {
  std::string name;    // as above
  at::Tensor numbers;  // whole ones of any type, as many as the BlockSpec says; added up over the step's microbatches
};

// The contributions of some blocks to one microbatch.
struct Auxiliaries {
  std::vector<AuxiliaryLoss> losses;
  std::vector<AuxiliaryCount> counts;
};

}  // namespace braid::nn
