// A model is a list of blocks, so it can be cut anywhere. A block maps a hidden state to the next; the first makes it
// from tokens, the last turns it into a loss or logits.
//
// Shapes: b sequences of a microbatch, t tokens, c features, v vocabulary (padded, of this tensor rank: v/n).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/nn/auxiliary.h"
#include "braid/param/weight_grad_queue.h"

namespace braid::nn {

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
