// The result of a comparison: equal up to rounding, or the first tensor that is not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/spec/train_spec.h"
#include "braid/verify/differences.h"
#include "braid/verify/subjects.h"

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
  std::string tensor;   // "blocks.*.attention.qkv.weight"
  double relative = 0;  // the largest relative difference
  double bound = 0;     // the relative difference that rounding explains there
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

// Returns that bound for a tensor with this difference. `rounded`: the differences of the rounded serial run. Slack
// takes the place of theirs.
double rounding_bound(const Place& place, const Difference& difference, const Differences& rounded,
                      const Subjects& subjects, DType dtype);

// Returns the verdict on `layout`, the differences of a run to the serial one, given those of the rounded serial run.
//
// A tensor may differ by kMargin times the difference of the two serial runs and one rounding of its own type:
//
//   bound = kMargin (|rounded - serial| + rounding_of(type, terms of its longest sum) x largest number)
//
// Inputs and initial weights may not differ at all. Updated parameters have a slack, which differs from number to
// number, in place of |rounded - serial| (update_slack.h).
Verdict judged(const Differences& layout, const Differences& rounded, const Subjects& subjects, DType dtype);

}  // namespace braid::verify
