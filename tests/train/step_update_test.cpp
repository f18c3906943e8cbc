// A step whose loss or gradients are not finite: what it says, and what it leaves.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "tests/train/layout_run.h"

namespace braid::train::step_update_test {
namespace {

// Step 1 moves every weight by about 1e200.
TEST(Divergence, NamesTheStepAndLeavesTheWeightsBeforeIt) {
  RunSpec spec = tiny_spec(6, 8);
  spec.mesh.pipe = 2;
  spec.pipeline.schedule = "zb-h2";
  spec.optimizer.lr = 1e200;
  on_every_rank(spec, [](Trainer& trainer) {
    trainer.step();
    const at::Tensor good = trainer.model().params().flat_master().detach().clone();
    try {
      trainer.step();
      ADD_FAILURE() << "a loss that is not finite ends the training";
    } catch (const RunError& error) {
      EXPECT_EQ(std::string(error.what()).find("step 2: "), 0) << error.what();
    }
    EXPECT_EQ(trainer.num_steps(), 1);
    EXPECT_TRUE(good.equal(trainer.model().params().flat_master()));
  });
}

}  // namespace
}  // namespace braid::train::step_update_test
