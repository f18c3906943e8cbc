// The result of a comparison: equal up to rounding, or the first tensor that is not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/verify/differences.h"
#include "braid/verify/rounding.h"

namespace braid::verify {

// The first tensor that differs by more than rounding explains, in the order of steps, phases and ops.
struct Divergence {
  int64_t step = 1;
  Phase phase = Phase::Forward;
  std::string op, tensor;
  std::vector<int> ranks;  // those whose part differs, ascending; empty if no rank holds a part of the tensor
  double relative = 0, bound = 0;
};

// The tensors of one name in all layers, steps and ranks, in one phase.
struct Row {
  Phase phase = Phase::Forward;
  std::string tensor;  // "blocks.*.attention.qkv.weight"
  double relative =
      0;             // the largest relative difference; if it is not equal, the largest that rounding does not explain
  double bound = 0;  // the relative difference that rounding explains of that number
  bool same_bits = true;
  bool equal = true;  // up to rounding
};

struct Verdict {
  int steps = 0;
  double seconds = 0;
  std::vector<Row> rows;  // in the order of phases and ops
  std::optional<Divergence> first_divergence;

  double max_relative() const;
  bool same_bits() const;
};

// Returns the verdict on `layout`, the differences of a run to the serial one.
Verdict judged(const Differences& layout, const Rounding& rounding);

}  // namespace braid::verify
