// The all-to-all of context parallelism in the manner of DeepSpeed-Ulysses: from some tokens of all heads to all tokens
// of some heads, and back. Attention between the two is that of whole sequences.
//
//   3 heads, 2 ranks      tokens 0 .. t/2   tokens t/2 .. t
//   head 0                     rank 0           rank 1                rank 0: head 0
//   heads 1, 2                 rank 0           rank 1         ->     rank 1: heads 1, 2
//
// A key head and the query heads that share it stay together. Ranks have the same number of these groups, or one more
// or less where the numbers do not divide, so a rank may have none. Source: Jacobs et al., "DeepSpeed Ulysses" (2023).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"

namespace braid::nn {

// The division of the heads in a row of features among ranks.
struct HeadExchange {
  std::vector<int64_t> heads;  // of each segment of the row: queries, keys, values. Heads of a segment are equally wide
  int64_t groups = 1;          // divides the heads of each segment
  Communicator* ranks = nullptr;
  comm::OpName name = comm::CallName::current().backward();  // of the calls of backward

  // Returns the number of groups that `rank` has between the two exchanges.
  int64_t groups_of(int rank) const { return first_group(rank + 1) - first_group(rank); }
  int64_t first_group(int rank) const { return groups * rank / ranks->size(); }
};

// x_btf: this rank's tokens, all heads. Returns all tokens of this rank's heads.
at::Tensor tokens_to_heads(const at::Tensor& x_btf, const HeadExchange& exchange);
// The reverse, of heads of `head_width` features. Each is the other's backward. All ranks call them, and run their
// backwards, in the same order. They throw CommError.
at::Tensor heads_to_tokens(const at::Tensor& x_btf, const HeadExchange& exchange, int64_t head_width);

}  // namespace braid::nn
