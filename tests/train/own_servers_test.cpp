// Parameter servers that are ranks of their own: bulk synchronous they train the bits of servers beside the ranks.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/served_run.h"

namespace braid::train::own_servers_test {
namespace {

RunSpec own(RunSpec spec) {
  spec.sync.servers_on = ServersOn::Own;
  return spec;
}

TEST(OwnServers, BulkSynchronousTrainingHasTheBitsOfServersBesideTheRanks) {
  for (const ScheduleOnMesh& layout : {ScheduleOnMesh{"1f1b", {.data = 2}},
                                       {"1f1b", {.pipe = 2, .data = 2, .tensor = 2}},
                                       {"dualpipe", {.pipe = 2, .data = 1}}}) {
    SCOPED_TRACE(cat(layout));
    const RunSpec spec = served_spec(layout);
    const LayoutResult beside = train_layout(spec), alone = train_layout(own(spec));
    EXPECT_EQ(alone.losses, beside.losses);
    EXPECT_TRUE(same_bits(alone.params, beside.params));
  }
}

class OwnServersCheckpoint : public ScratchFolder {};

TEST_F(OwnServersCheckpoint, OfReplicasThatRunApartHoldsAllPushes) {
  for (const char* consistency : {"ssp", "asp"}) {
    SCOPED_TRACE(consistency);
    RunSpec spec = own(served_spec({"1f1b", {.data = 2}}, consistency));
    spec.sync.staleness = 1;
    spec.train.steps = 6;
    const std::string folder = path(consistency);
    double saved = 0;
    const EachRanks ranks = weights_after(spec, [&](Trainer& trainer) {
      const double before = trainer.evaluate();
      for (int step = 0; step < spec.train.steps; ++step) trainer.step();
      const double after = trainer.evaluate();
      EXPECT_LT(after, before);
      if (trainer.groups().world.rank() == 0) saved = after;
      trainer.save(folder, "");
    });
    EXPECT_TRUE(copies_agree(ranks));
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.load(folder);
      EXPECT_NEAR(trainer.evaluate(), saved, 1e-10);
    });
  }
}

TEST(OwnServers, AFailingWorkerEndsTheRunForAll) {
  for (const char* consistency : {"bsp", "asp"}) {
    EXPECT_THROW(on_every_rank(own(served_spec({"1f1b", {.data = 2}}, consistency)),
                               [&](Trainer& trainer) {
                                 trainer.step();
                                 if (trainer.groups().world.rank() == 1) throw RunError("out of paper");
                                 while (true) trainer.step();
                               }),
                 RunError);
  }
}

}  // namespace
}  // namespace braid::train::own_servers_test
