// Autograd regions of sequence parallelism: operations by which a hidden state, of which each rank of a group has an
// equal part of every sequence's tokens, enters and leaves the part of the model that reads all tokens.
//
//                   forward          backward
//   gather_tokens   all-gather       reduce-scatter    to a layer that is split over the group (Megatron's g)
//   all_tokens      all-gather       own part          to a layer that every rank computes whole
//   scatter_sum     reduce-scatter   all-gather        partial sums of all tokens -> own part  (Megatron's g-bar)
//
// x_btc: b sequences x t tokens x c features. Sums are over the group, in the Communicator's fixed order. All ranks of
// the group call the same regions in the same order, and run their backwards in the same order. All functions throw
// CommError. Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (2022),
// section 4.2.
#pragma once

#include "braid/comm/communicator.h"
#include "braid/nn/activation.h"

namespace braid::nn {

// Returns all tokens in type `sums`. The gradients are summed in that type and then rounded to the type of x. The
// result can be recomputed (Activation::again): its reader keeps this rank's part and gathers again in backward. Weight
// gradients that `weight_grads` has deferred run while the gradients' sum travels; null: there are none.
Activation gather_tokens(const Activation& x_btc, Communicator& group, at::ScalarType sums,
                         param::WeightGradQueue* weight_grads);
at::Tensor all_tokens(const at::Tensor& x_btc, Communicator& group);
// Returns the sums rounded to `type`, in which gradients are gathered too. REQUIRES: the number of tokens is divisible
// by the group's size.
at::Tensor scatter_sum(const at::Tensor& x_btc, Communicator& group, at::ScalarType type);

}  // namespace braid::nn
