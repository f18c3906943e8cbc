// The interface of a block. A model is a list of blocks, so it can be cut anywhere. A block maps a hidden state to the
// next one; the first block computes it from tokens, and the last computes a loss or logits from it.
//
// Shapes: b sequences of a microbatch, t tokens, c features, v entries of the vocabulary (padded; a tensor rank has
// v/n). Under sequence parallelism, a tensor rank has t/n tokens of the hidden state that a block receives and returns.
// Under context parallelism, t are the tokens of a context rank; documents are still those of whole sequences.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/layout/tensor_sums.h"
#include "braid/nn/context_group.h"
#include "braid/nn/kernels/token_part.h"
#include "braid/nn/value_observer.h"
#include "braid/param/weight_grad_queue.h"

namespace braid::nn {

// Outputs of a block beside its hidden state: auxiliary losses and counts. A router balances its experts with a loss
// and reports their load with a count. Neither is sent between stages.
//
//   objective of a microbatch = loss of the head + sum over blocks of coefficient x auxiliary loss
//
// An auxiliary loss is one more root of the backward of its graph, seeded with its coefficient times the seed of the
// head's loss. Its gradients for hidden state and weights therefore come out of the block's ordinary backward, under
// any schedule. Each auxiliary loss is computed on one microbatch, so a loss that is not a mean over tokens depends on
// train.microbatch.
struct AuxiliaryLoss {
  std::string name;        // a name from the block's BlockSpec; contributed once per microbatch
  at::Tensor value;        // a scalar with its graph, the same on all ranks of the tensor axis
  double coefficient = 1;  // the factor in the objective; the reported loss is `value`, without the factor
};

struct AuxiliaryCount {
  std::string name;    // a name from the block's BlockSpec
  at::Tensor numbers;  // integers of any type, as many as the BlockSpec gives; added up over the step's microbatches
};

// The contributions of some blocks to one microbatch.
struct Auxiliaries {
  std::vector<AuxiliaryLoss> losses;
  std::vector<AuxiliaryCount> counts;
};

class KeyValueCache;

// The tensors that layers keep in the graph for backward. The choice does not change results.
enum class Keep {
  Everything,  // all tensors that backward reads
  Selected,    // all except outputs that are cheap to recompute: attention core, norms and activation functions
};

// Objects shared by a rank's layers. All outlive the layers.
struct RankContext {
  Communicator& tensor;                  // the tensor axis; at size 1 its collectives are the identity
  param::WeightGradQueue& weight_grads;  // the queue on which backward leaves weight gradients
  Keep keep = Keep::Everything;
  layout::Sequence tokens = layout::Sequence::Whole;  // those of hidden states between layers that tensor ranks split
  ContextGroup context = {};
  ValueObserver* observer = nullptr;  // of the values that ops make; null: none

  // Returns the part of each sequence's tokens that this rank's tensor ranks have together.
  kernels::TokenPart context_part() const {
    if (!context.ranks) return {};
    return {context.ranks->rank(), context.ranks->size()};
  }
  // Returns the part that this rank has of hidden states between layers that tensor ranks split.
  kernels::TokenPart token_part() const {
    const kernels::TokenPart all = context_part();
    if (tokens == layout::Sequence::Whole) return all;
    return {all.number * tensor.size() + tensor.rank(), all.count * tensor.size()};
  }
};

inline constexpr int64_t kNoTarget = -1;

// One microbatch in its pass through the blocks.
struct Microbatch {
  int micro = 0;             // index among this rank's microbatches of the step
  uint64_t dropout_key = 0;  // depends only on the global microbatch and the step, not on the mesh
  bool training = true;      // false: no dropout, nothing is queued (the caller holds a NoGradGuard)
  at::Tensor tokens_bt;      // int64
  // int64; undefined: the last block returns logits instead of a loss. In evaluation, a sequence may have fewer targets
  // than tokens; the targets then belong to its last tokens.
  at::Tensor targets_bt;
  // int64, b x j, places in the sequence; undefined: all. The head computes the logits of these tokens alone, and the
  // targets are theirs. A target of kNoTarget has no loss.
  at::Tensor rows_bj;
  double num_targets = 0;  // by which the sum of losses is divided; 0: the number of targets
  // int64, the number of a token's document in its sequence, from 0; undefined: no document mask. Always on the CPU,
  // because the host chooses the products by it.
  at::Tensor documents_bt;
  double loss_gradient = 1;  // the seed of the loss's backward
  at::Tensor dropout_key_1;  // on devices: dropout_key as an int64 tensor, which a replayed graph reads again
  // Receives auxiliary losses and counts. Set in every forward of a training microbatch, recomputation included (whose
  // counts are not read); null otherwise, as in evaluation.
  Auxiliaries* auxiliaries = nullptr;
  // Set only during generation (CPU, no gradients); null otherwise. The tokens are those of the cache's current
  // forward, and the head returns logits only for the last token of each stretch.
  KeyValueCache* cache = nullptr;
};

class Block {
 public:
  virtual ~Block() = default;
  // x_btc: undefined for the first block. Returns btc. The last block returns the mean loss over b x t (a scalar);
  // without targets it returns the logits of this tensor rank, b x t x v/n.
  virtual at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) = 0;
};

}  // namespace braid::nn
