// Runs whose numbers are not finite are not reported equal.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/verify/verify_layout.h"
#include "tests/verify/small_run.h"

namespace braid::verify::not_finite_test {
namespace {

TEST(NotFinite, GradientsThatOverflowAreNotCompared) {
  RunSpec run = small_run();
  run.mesh.data = 2;
  run.train.dtype = DType::Float16;
  run.train.loss_scale = 0x1p24;
  EXPECT_THROW(verify_layout(run, synthetic_corpus(run, 2)), RunError);
  run.train.loss_scale = 16;
  const Verdict verdict = verify_layout(run, synthetic_corpus(run, 2));
  EXPECT_FALSE(verdict.first_divergence) << text_of(verdict);
}

}  // namespace
}  // namespace braid::verify::not_finite_test
