// The parts of parameters that a rank of a run holds, and their places in the whole tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "braid/mesh/placement.h"
#include "braid/param/param_store.h"

namespace braid::train {

// Weights: those that layers compute with, frozen ones too; if they are sharded, those that this rank owns. Masters and
// Gradients: of what this rank owns.
enum class Held { Weights, Masters, Gradients };

// Receives a part of a parameter: a contiguous tensor without a graph, and its place in the whole tensor.
using VisitPart =
    std::function<void(const param::Parameter& param, const at::Tensor& part, const mesh::Placement& placement)>;

// Calls `visit` with each part that the rank holds.
void visit_held(const param::ParamStore& store, Held what, const VisitPart& visit);

// Returns the box of a part that is `piece` of its placement.
at::Tensor box_of(const at::Tensor& part, const mesh::Piece& piece);

// Calls `visit` with the boxes of `part` and of `whole` that have the same place. REQUIRES: `whole` has the shape of
// the whole tensor.
void visit_boxes(const at::Tensor& part, const mesh::Placement& placement, const at::Tensor& whole,
                 const std::function<void(const at::Tensor& of_part, const at::Tensor& of_whole)>& visit);

// Copies `part` to its place in `whole`, which is made and filled with NaN if it is undefined.
void copy_part(const at::Tensor& part, const mesh::Placement& placement, at::Tensor& whole);

}  // namespace braid::train
