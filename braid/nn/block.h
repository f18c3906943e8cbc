// A model is a list of blocks, so it can be cut anywhere. A block maps a hidden state to the next; the first makes it
// from tokens, the last turns it into a loss or logits.
//
// Shapes: b sequences of a microbatch, t tokens, c features, v vocabulary (padded, of this tensor rank: v/n).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/weight_grad_queue.h"

namespace braid::nn {

// Contributions of a block beside its hidden state: auxiliary losses and counts. A router balances its experts with one
// and reports their load with the other. Neither is sent between stages.
//
//   objective of a microbatch = loss of the head + sum over blocks of coefficient x auxiliary loss
//
// An auxiliary loss is one more root of the backward of the graph it was made in, seeded with its coefficient times the
// seed of the head's loss. What follows from it for hidden state and weights therefore comes out of the block's
// ordinary backward, under any schedule. A loss that is no mean over tokens depends on train.microbatch: it is of one
// microbatch at a time.
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

class KeyValueCache;

// The tensors that layers keep in the graph for backward. Results are the same.
enum class Keep {
  Everything,  // all that backward reads
  Selected,    // all but what is cheap to make again: results of the attention core, norms and activation functions
};

// Objects shared by a rank's layers. All outlive the layers.
struct RankContext {
  Communicator& tensor;                  // the tensor axis; size 1 is the identity
  param::WeightGradQueue& weight_grads;  // where backward leaves weight gradients
  Keep keep = Keep::Everything;
};

// One microbatch on its way through the blocks.
struct Microbatch {
  int micro = 0;             // place among this rank's microbatches of the step
  uint64_t dropout_key = 0;  // same for the same global microbatch and step on every mesh
  bool training = true;      // false: no dropout, nothing is queued (the caller holds a NoGradGuard)
  at::Tensor tokens_bt;      // int64
  at::Tensor targets_bt;     // int64; undefined: the last block returns logits instead of a loss. Of evaluations
                             // perhaps fewer than tokens: the loss is of the last tokens, as many as there are targets
  at::Tensor documents_bt;  // int64, which document of its sequence a token is of, 0, 1, ..; undefined: no mask. On the
                            // CPU always: it decides which products are formed
  double loss_gradient = 1;  // the gradient with which the loss's backward will be seeded
  at::Tensor dropout_key_1;  // on devices: dropout_key as an int64 tensor, which a replayed graph reads anew
  // Receives auxiliary losses and counts. Set in every run of a training microbatch, recomputation included, whose
  // counts are not read; null otherwise, as in evaluation.
  Auxiliaries* auxiliaries = nullptr;
  // Set only during generation (CPU, no gradients); null otherwise. The tokens are those of the forward that it has at
  // hand, and the head returns logits of the last token of each of its stretches.
  KeyValueCache* cache = nullptr;
};

class Block {
 public:
  virtual ~Block() = default;
  // x_btc: undefined for the first block. Returns btc; the last block returns the mean loss over b x t (a scalar), or
  // without targets the logits of this tensor rank, b x t x v/n.
  virtual at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) = 0;
};

}  // namespace braid::nn
