// The part of each value and input of a microbatch that one rank holds.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/layout/tensor_sums.h"
#include "braid/mesh/placement.h"
#include "braid/nn/kernels/token_part.h"
#include "braid/spec/run_spec.h"
#include "braid/verify/subjects.h"

namespace braid::verify {

// A rank's part of a value and its place in the whole value.
struct PlacedValue {
  at::Tensor part;
  mesh::Placement placement;
};

// Context ranks have equal parts of each sequence's tokens, in order; only inside of attention are tokens on other
// ranks. In a masked family, every context rank has the rows of all picked tokens in its head, and computes those of
// its own tokens.
class ValuePlaces {
 public:
  // The rank's part of dims that the tensor axis splits, and of each sequence's tokens.
  struct Rank {
    mesh::Share tensor = {};
    kernels::TokenPart tokens = {};
  };
  // `subjects` outlives this.
  ValuePlaces(const RunSpec& spec, const Subjects& subjects, const Rank& rank);

  // Returns the value without its graph, in the shape of its placement. `rows_bj`: the places of all picked tokens of
  // the microbatch in their sequences; undefined if all tokens are picked.
  PlacedValue placed(const nn::MadeValue& place, const at::Tensor& value, const at::Tensor& rows_bj) const;
  // Returns the part of an input of the microbatch that the rank reads. Documents are whole everywhere.
  at::Tensor input_part(int subject, const at::Tensor& whole, const at::Tensor& rows_bj) const;
  // Returns true if the value is a part of a sum over context ranks, as the loss of a microbatch.
  bool is_part_of_sum(const PlacedValue& value) const;

 private:
  mesh::Placement placement_of(const nn::MadeValue& place, const at::Tensor& value, const at::Tensor& rows_bj) const;
  at::Tensor others(const at::Tensor& rows_bj) const;
  int64_t num_tokens() const { return spec_.model.context / rank_.tokens.count; }

  const RunSpec spec_;
  const Subjects& subjects_;
  const Rank rank_;
};

// Returns true if several ranks hold copies of a piece, so that a gradient of each is a part of a sum.
bool has_copies(const mesh::Placement& placement);

}  // namespace braid::verify
