// The state of independent replicas in a checkpoint, and the replicas that may resume from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/local_run.h"

namespace braid::train::local_sgd_resume_test {
namespace {

class LocalSgdResume : public ScratchFolder {};

TEST_F(LocalSgdResume, InsideAPeriodAndAtItsEndNothingIsLost) {
  const std::vector<int> saves = sampled(std::vector{3, 1, 4, 6}, 2);
  for (const char* replication : {"local-sgd", "diloco"}) {
    for (const MeshSpec& mesh : {MeshSpec{.data = 3}, MeshSpec{.pipe = 2, .data = 2}}) {
      RunSpec spec = local_spec(replication, 3, mesh);
      spec.train.dtype = DType::Float32;
      spec.train.steps = 8;
      spec.sync.period_warmup = 1;  // alike after steps 1, 4, 7 and 8
      const LayoutResult want = train_locally(spec, tiny_corpus());
      for (const int save_at : saves) {
        SCOPED_TRACE(cat(replication, " pipe ", mesh.pipe, ", saved at ", save_at));
        const LayoutResult got =
            train_locally(spec, tiny_corpus(), save_at, path(cat(replication, mesh.pipe, "-", save_at)));
        EXPECT_EQ(got.losses, want.losses);
        EXPECT_TRUE(same_bits(got.params, want.params));
      }
    }
  }
}

// Loads what `before` wrote after `steps` steps, and makes one more.
double next_loss(const RunSpec& before, int steps, RunSpec after, const std::string& folder) {
  on_every_rank(before, [&](Trainer& trainer) {
    while (trainer.num_steps() < steps) trainer.step();
    trainer.save(folder, spec::to_toml(before));
  });
  double loss = 0;
  after.train.allow_change = {"sync.replication", "sync.period", "optimizer.groups"};
  on_every_rank(after, [&](Trainer& trainer) {
    trainer.load(folder);
    const double mine = trainer.step().loss;
    if (trainer.groups().world.rank() == 0) loss = mine;
  });
  return loss;
}

std::vector<std::string> refused_keys(const std::function<void()>& call) {
  std::vector<std::string> keys;
  try {
    call();
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) keys.push_back(problem.key);
  }
  return keys;
}

TEST_F(LocalSgdResume, ReplicasThatAreAlikeGoOnAsAnyNumberInAnyWay) {
  RunSpec before = local_spec("diloco", 2, {.data = 2});
  before.train.batch = 8;
  RunSpec serial = before;
  serial.mesh = {};
  serial.sync = {};
  const double want = next_loss(before, 2, serial, path("a"));
  for (const char* replication : {"all-reduce", "local-sgd", "diloco"}) {
    for (const int data : {1, 2, 4}) {
      RunSpec after = before;
      after.sync.replication = value_of<ReplicationKind>(replication).value();
      after.mesh.data = data;
      EXPECT_NEAR(next_loss(before, 2, after, path(cat(replication, data))), want, 1e-10) << replication << " " << data;
    }
  }
  EXPECT_GT(next_loss(serial, 2, before, path("b")), 0);
}

TEST_F(LocalSgdResume, ReplicasThatAreApartGoOnAsTheyWere) {
  RunSpec before = local_spec("diloco", 2, {.data = 2});
  before.train.batch = 8;
  const auto refused = [&](const char* replication, int data) {
    RunSpec after = before;
    after.sync.replication = value_of<ReplicationKind>(replication).value();
    after.mesh.data = data;
    return refused_keys([&] { next_loss(before, 3, after, path(cat(replication, data))); });
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(refused("diloco", 2), Keys{});
  EXPECT_EQ(refused("diloco", 4), Keys{"mesh.data"});
  EXPECT_EQ(refused("local-sgd", 2), Keys{"sync.replication"});
  EXPECT_EQ(refused("all-reduce", 1), (Keys{"sync.replication", "mesh.data"}));
}

// Each replica has other weights, and a frozen parameter has one value.
TEST_F(LocalSgdResume, NoParameterIsFrozenInsideAPeriod) {
  RunSpec before = local_spec("local-sgd", 2, {.data = 2});
  before.optimizer.groups = {{.match = "blocks.1.*", .frozen = true}};
  const auto refused = [&](int steps, std::vector<ParameterGroup> groups) {
    RunSpec after = before;
    after.optimizer.groups = std::move(groups);
    return refused_keys([&] { next_loss(before, steps, after, path(cat(steps))); });
  };
  const ParameterGroup first{.match = "blocks.[01].*", .frozen = true}, second = before.optimizer.groups[0];
  using Keys = std::vector<std::string>;
  EXPECT_EQ(refused(3, {first}), Keys{"optimizer.groups"});
  EXPECT_EQ(refused(2, {first}), Keys{}) << "at the end of a period";
  EXPECT_EQ(refused(3, {{.match = "*.bias", .lr_scale = 2}}), Keys{}) << "released";
  EXPECT_EQ(refused(3, {second, {.match = "*.bias", .lr_scale = 2}}), Keys{});
}

// At such a rate the outer step at the end of the period moves nothing, if it begins at the weights of the checkpoint.
TEST_F(LocalSgdResume, ParametersReleasedInsideAPeriodKeepTheirWeights) {
  RunSpec before = local_spec("diloco", 3, {.data = 2});
  before.train.steps = 3;
  before.optimizer.lr = 1e-12;
  before.optimizer.groups = {{.match = "blocks.0.*", .frozen = true}};
  on_every_rank(before, [&](Trainer& trainer) {
    trainer.model().params().frozen_data().flat().fill_(0.5);  // as train.init would, not the initial values
    trainer.step();
    trainer.save(path("a"), spec::to_toml(before));
  });
  RunSpec after = before;
  after.optimizer.groups = {};
  after.train.allow_change = {"optimizer.groups"};
  on_every_rank(after, [&](Trainer& trainer) {
    trainer.load(path("a"));
    while (trainer.num_steps() < after.train.steps) trainer.step();
    const at::Tensor weights = trainer.model().params()["blocks.0.mlp.up.weight"].data.detach();
    EXPECT_LT(weights.sub(0.5).abs().max().item<double>(), 1e-9);
  });
}

}  // namespace
}  // namespace braid::train::local_sgd_resume_test
