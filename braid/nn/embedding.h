// Token and position embeddings.
//
// The token table is split by rows over the tensor axis. Rank r of n holds rows r * v/n .. (r + 1) * v/n - 1 of v
// padded rows:
//
//   v = 8, n = 2    rank 0: rows 0 1 2 3    rank 1: rows 4 5 6 7      a rank gives zeros for the other's tokens,
//                                                                    and the sum over ranks is the embedding
#pragma once

#include "braid/nn/weight_grads.h"

namespace braid::nn {

// Returns this rank's part of the embedding, btc. weight: this rank's rows, [v/n, c], which are multiplied with
// `scale`, rounded to their type; 0: they are not. check() fails on a CPU if a token is outside the table.
at::Tensor lookup(ParamUse weight, double scale, const RankContext& rank, const Microbatch& microbatch);

// Adds positions in place: x_btc += weight[begin:begin + t], where token 0 of x is number `begin` of its sequence.
// weight: [at least begin + t, c], replicated. REQUIRES: no backward has saved x.
at::Tensor add_positions_(const at::Tensor& x_btc, const GradTarget& weight, int64_t begin = 0);
// Adds row places_n[i] of weight_tc to token i of all b x t, in place and without autograd.
at::Tensor add_positions_at_(const at::Tensor& x_btc, const at::Tensor& weight_tc, const at::Tensor& places_n);

// Adds row 0 of the table of token types to all tokens, in place. weight: [types, c], replicated. REQUIRES: no backward
// has saved x.
at::Tensor add_first_type_(const at::Tensor& x_btc, const GradTarget& weight);

// Returns the rows of each sequence at the places rows_bj, b x j x c; x itself if rows_bj is undefined. A place may be
// repeated: the gradients of its rows are added.
at::Tensor pick_rows(const at::Tensor& x_btc, const at::Tensor& rows_bj);

}  // namespace braid::nn
