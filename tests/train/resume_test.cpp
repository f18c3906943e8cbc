// A checkpoint written on one mesh goes on, on any other, as if nothing had happened.
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::resume_test {
namespace {

class Resume : public ScratchFolder {};

RunSpec on_mesh(int pipe, int data, int tensor) {
  RunSpec spec = tiny_spec(6, 8);
  spec.mesh = {.pipe = pipe, .data = data, .context = 1, .expert = 1, .tensor = tensor};
  return spec;
}

TEST_F(Resume, TwoStepsSavedAndOneMoreOnAnotherMeshAreThreeSteps) {
  const LayoutResult want = train_layout(on_mesh(1, 1, 1));
  on_every_rank(on_mesh(2, 2, 2), [&](Trainer& trainer) {
    trainer.step();
    trainer.step();
    trainer.save(folder_ + "/step-2", "");
  });
  for (const RunSpec& spec : {on_mesh(1, 1, 1), on_mesh(1, 8, 1), on_mesh(3, 1, 2), on_mesh(2, 1, 3)}) {
    std::map<std::string, at::Tensor> params;
    std::mutex lock;
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.load(folder_ + "/step-2");
      EXPECT_EQ(trainer.num_steps(), 2);
      EXPECT_NEAR(trainer.step().loss, want.losses[2], 1e-10);
      const std::scoped_lock hold(lock);
      collect(trainer, params, Held::Weights);
    });
    EXPECT_LT(largest_difference(params, want.params), 1e-10);
  }
}

// Whatever was sharded, and whatever is to be.
TEST_F(Resume, ShardedStatesResumeUnderAnyOtherLayout) {
  const LayoutResult want = train_layout(on_mesh(1, 1, 1));
  const auto sharded = [](RunSpec spec, int zero, int group) {
    spec.sync.zero = zero;
    spec.sync.zero_group = group;
    return spec;
  };
  const RunSpec specs[] = {on_mesh(2, 1, 1), sharded(on_mesh(1, 4, 1), 1, 0), sharded(on_mesh(2, 2, 2), 2, 0),
                           sharded(on_mesh(1, 8, 1), 3, 4), sharded(on_mesh(2, 4, 1), 3, 0)};
  for (const RunSpec& saved : specs) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    on_every_rank(saved, [&](Trainer& trainer) {
      trainer.step();
      trainer.step();
      trainer.save(folder_ + "/step-2", "");
    });
    for (const RunSpec& spec : specs) {
      if (saved != specs[2] && spec != specs[2]) continue;  // to and from one of them
      std::map<std::string, at::Tensor> params;
      std::mutex lock;
      on_every_rank(spec, [&](Trainer& trainer) {
        trainer.load(folder_ + "/step-2");
        EXPECT_NEAR(trainer.step().loss, want.losses[2], 1e-10);
        const std::scoped_lock hold(lock);
        collect(trainer, params, Held::Weights);
      });
      EXPECT_LT(largest_difference(params, want.params), 1e-10);
    }
  }
}

TEST_F(Resume, AnotherBatchSizeIsRefusedBecauseSamplesWouldRepeat) {
  on_every_rank(on_mesh(1, 1, 1), [&](Trainer& trainer) {
    trainer.step();
    trainer.save(folder_ + "/step-1", "");
  });
  RunSpec spec = on_mesh(1, 1, 1);
  spec.train.batch = 4;
  EXPECT_THROW(on_every_rank(spec, [&](Trainer& trainer) { trainer.load(folder_ + "/step-1"); }), ConfigError);
}

}  // namespace
}  // namespace braid::train::resume_test
