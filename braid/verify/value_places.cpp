// The shapes of values at run time follow from their dims.
#include "braid/verify/value_places.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/layout/dims_placement.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/spec/masking.h"

namespace braid::verify {

ValuePlaces::ValuePlaces(const RunSpec& spec, const Subjects& subjects, mesh::Share tensor_rank)
    : spec_(spec), subjects_(subjects), share_(tensor_rank) {}

PlacedValue ValuePlaces::placed(const nn::MadeValue& place, const at::Tensor& value) const {
  const ModelSpec& model = spec_.model;
  mesh::Placement placement;
  if (place.kind == nn::ValueKind::Logits) {
    const mesh::Index shape{value.size(0), value.size(1), model.vocab};
    placement = mesh::split_dim(shape, 2, model::padded_vocab(model, share_.parts), share_);
  } else {
    model::Extents extents = model::extents_of(model, spec_.train.microbatch, model.context);
    extents['j'] = spec::num_picked(spec_);
    const model::Dims& dims = subjects_.graph().block(place.block).values[place.value];
    placement = layout::placement_of_value(model, extents, dims, share_, layout::sequence_of(spec_.mesh));
  }
  check(mesh::num_elements(placement.local_shape) == value.numel(), "a value has the extents of its dims");
  return {value.detach().reshape(placement.local_shape), std::move(placement)};
}

bool has_copies(const mesh::Placement& placement) {
  return std::ranges::any_of(placement.pieces, [](const mesh::Piece& piece) { return piece.copies > 1; });
}

}  // namespace braid::verify
