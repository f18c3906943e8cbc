// The shapes of values at run time follow from their dims.
#include "braid/verify/value_places.h"

#include <algorithm>
#include <string>
#include <utility>

#include "braid/base/errors.h"
#include "braid/layout/dims_placement.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/nn/block.h"
#include "braid/spec/masking.h"

namespace braid::verify {

namespace {

constexpr int kSequenceDim = 0, kTokenDim = 1;  // of values with tokens

bool has(const model::Dims& dims, char letter) { return model::text_of(dims).find(letter) != std::string::npos; }

// Returns the placement of tokens from `first` on of sequences of `all` tokens, given their placement among themselves.
mesh::Placement moved(mesh::Placement placement, int64_t first, int64_t all) {
  placement.global_shape[kTokenDim] = all;
  for (mesh::Piece& piece : placement.pieces) {
    piece.global.begin[kTokenDim] += first;
    piece.global.end[kTokenDim] += first;
  }
  return placement;
}

// Returns the placement without the rows of other ranks.
mesh::Placement without(const mesh::Placement& all, const at::Tensor& others_bj) {
  mesh::Placement own = all;
  own.pieces.clear();
  for (mesh::Piece piece : all.pieces) {
    for (int64_t b = 0; b < others_bj.size(0); ++b) {
      for (int64_t j = 0; j < others_bj.size(1); ++j) {
        if (others_bj[b][j].item<bool>()) continue;
        piece.global.begin[kSequenceDim] = piece.local_begin[kSequenceDim] = b;
        piece.global.begin[kTokenDim] = piece.local_begin[kTokenDim] = j;
        piece.global.end[kSequenceDim] = b + 1;
        piece.global.end[kTokenDim] = j + 1;
        own.pieces.push_back(piece);
      }
    }
  }
  return own;
}

}  // namespace

ValuePlaces::ValuePlaces(const RunSpec& spec, const Subjects& subjects, const Rank& rank)
    : spec_(spec), subjects_(subjects), rank_(rank) {}

mesh::Placement ValuePlaces::placement_of(const nn::MadeValue& place, const at::Tensor& value,
                                          const at::Tensor& rows_bj) const {
  const ModelSpec& model = spec_.model;
  const bool is_logits = place.kind == nn::ValueKind::Logits;
  const model::Dims& dims = subjects_.graph().block(place.block).values[place.value];
  mesh::Placement placement;
  if (is_logits) {
    const mesh::Index shape{value.size(0), value.size(1), model.vocab};
    placement = mesh::split_dim(shape, 2, model::padded_vocab(model, rank_.tensor.parts), rank_.tensor);
  } else {
    model::Extents extents = model::extents_of(model, spec_.train.microbatch, model.context);
    extents['t'] = static_cast<double>(num_tokens());
    extents['j'] = spec::num_picked(spec_);
    placement = layout::placement_of_value(model, extents, dims, rank_.tensor, layout::sequence_of(spec_.mesh));
  }
  if (rank_.tokens.count == 1) return placement;
  if (has(dims, 't') || (is_logits && !rows_bj.defined())) {
    return moved(std::move(placement), rank_.tokens.number * num_tokens(), model.context);
  }
  if (has(dims, 'j') || is_logits) return without(placement, others(rows_bj));
  return placement;
}

PlacedValue ValuePlaces::placed(const nn::MadeValue& place, const at::Tensor& value, const at::Tensor& rows_bj) const {
  mesh::Placement placement = placement_of(place, value, rows_bj);
  check(mesh::num_elements(placement.local_shape) == value.numel(), "a value has the extents of its dims");
  return {value.detach().reshape(placement.local_shape), std::move(placement)};
}

// Returns true for the picked tokens that other ranks have.
at::Tensor ValuePlaces::others(const at::Tensor& rows_bj) const {
  const int64_t first = rank_.tokens.number * num_tokens();
  return rows_bj.lt(first).logical_or_(rows_bj.ge(first + num_tokens()));
}

at::Tensor ValuePlaces::input_part(int subject, const at::Tensor& whole, const at::Tensor& rows_bj) const {
  if (rank_.tokens.count == 1 || subject == Subjects::kDocuments) return whole;
  const int64_t first = rank_.tokens.number * num_tokens();
  if (subject == Subjects::kRows) return whole.sub(first).masked_fill_(others(rows_bj), 0);
  if (subject == Subjects::kTargets && rows_bj.defined()) return whole.masked_fill(others(rows_bj), nn::kNoTarget);
  return whole.narrow(kTokenDim, first, num_tokens());
}

bool ValuePlaces::is_part_of_sum(const PlacedValue& value) const {
  return rank_.tokens.count > 1 && value.placement.global_shape.empty();
}

bool has_copies(const mesh::Placement& placement) {
  return std::ranges::any_of(placement.pieces, [](const mesh::Piece& piece) { return piece.copies > 1; });
}

}  // namespace braid::verify
