// Lowers a piece of the model from its ops to the calls that execute them. Calls are those of fused kernels where the
// ops next to each other allow it:
//
//   ops     norm | linear, bias | attention | linear | sum | bias, dropout, residual, norm | linear | bias, gelu | ...
//   calls   norm | product      | attention | product| sum | join and norm                 | product| bias + gelu
//
// A bias goes into the activation or the residual behind it, else into the product before it, else it is added after
// the sum over tensor ranks. Nothing is fused across a cut, and the bits are those of the unfused calls, but for a bias
// that a product adds before it rounds.
#pragma once

#include <memory>

#include "braid/model/graph.h"
#include "braid/nn/model.h"

namespace braid::nn {

// Makes a block of a model's graph on the parameters in `store`. check() fails on ops that are planned alone: those of
// experts.
std::unique_ptr<Block> lower(const ModelSpec& spec, const model::ModelGraph& graph, const ModelPiece& piece,
                             param::ParamStore& store, const RankContext& rank);

}  // namespace braid::nn
