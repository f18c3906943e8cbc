// The differences that rounding explains.
#pragma once

#include "braid/spec/train_spec.h"
#include "braid/verify/differences.h"
#include "braid/verify/subjects.h"

namespace braid::verify {

// Returns the relative change that another order of sums of up to `terms` terms makes in a number of this type. Errors
// of n roundings grow as sqrt(n) if they are independent (Higham & Mary, "A New Approach to Probabilistic Rounding
// Error Analysis", 2019). 16-bit types sum in float32 and round the sum, and each tensor rank's part of it.
double rounding_of(DType dtype, double terms);

// The bounds of a run. A tensor may differ by kMargin times the difference of the two serial runs and one rounding of
// its own type:
//
//   bound = kMargin (|rounded - serial| + rounding_of(type, terms of its longest sum) x largest number)
//
// Inputs and initial weights may not differ at all. Updated parameters have a slack, which differs from number to
// number, in place of |rounded - serial| (update_slack.h). The gradient norm has the norm of the gradients' differences
// in its place: | |g'| - |g| | <= |g' - g|. The two norms are single numbers, which may agree by chance.
struct Rounding {
  // The two serial runs show one draw of rounding errors, and the layout has another one. Their largest elements differ
  // by less than this factor.
  static constexpr double kMargin = 4;

  const Differences& rounded;  // of the rounded serial run
  const Subjects& subjects;
  DType dtype;

  // Returns the bound of a tensor with this difference.
  double bound(const Place& place, const Difference& difference) const;

 private:
  // Returns the norm of the differences of all gradients in a step.
  double of_gradients(int64_t step) const;
};

}  // namespace braid::verify
