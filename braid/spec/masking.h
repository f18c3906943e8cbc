// The masked objective of a run: how many tokens of a sequence are predicted.
#pragma once

#include <algorithm>
#include <cmath>

#include "braid/model/families.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

inline bool is_masked(const ModelSpec& model) { return model::family_of(model).traits.objective == Objective::Masked; }

// Returns the tokens of text in a masked model's sequence of this length: all but the first, [CLS], and the last,
// [SEP].
inline int text_tokens(int length) { return length - 2; }

// Returns the number of tokens that are chosen of so many tokens of text: a fraction of them, at least one and at most
// half. So packed sequences always have enough: each document has a token before the one that ends it.
inline int num_masks(double fraction, int text) {
  return std::clamp(static_cast<int>(std::lround(fraction * text)), 1, std::max(1, text / 2));
}

// Returns the tokens of a sequence whose logits are computed: those that are chosen, or all.
inline int num_picked(const RunSpec& spec) {
  const int context = spec.model.context;
  return is_masked(spec.model) ? num_masks(spec.data.mask_fraction, text_tokens(context)) : context;
}
inline double picked_fraction(const RunSpec& spec) {
  return num_picked(spec) / static_cast<double>(spec.model.context);
}

}  // namespace braid::spec
