// The part of each value that one rank holds.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/layout/tensor_sums.h"
#include "braid/mesh/placement.h"
#include "braid/spec/run_spec.h"
#include "braid/verify/subjects.h"

namespace braid::verify {

// A rank's part of a value and its place in the whole value.
struct PlacedValue {
  at::Tensor part;
  mesh::Placement placement;
};

class ValuePlaces {
 public:
  // `subjects` outlives this.
  ValuePlaces(const RunSpec& spec, const Subjects& subjects, mesh::Share tensor_rank);

  // Returns the value without its graph, in the shape of its placement.
  PlacedValue placed(const nn::MadeValue& place, const at::Tensor& value) const;

 private:
  const RunSpec spec_;
  const Subjects& subjects_;
  const mesh::Share share_;
};

// Returns true if several ranks hold copies of a piece, so that a gradient of each is a part of a sum.
bool has_copies(const mesh::Placement& placement);

}  // namespace braid::verify
