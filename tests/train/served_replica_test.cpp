// Training through a parameter server: bulk synchronous it is the serial run, otherwise it trains, and either way it
// can be saved and go on.
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>

#include "braid/base/errors.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::served_replica_test {
namespace {

RunSpec plain(int data) {
  RunSpec spec = tiny_spec(6, 8);
  spec.mesh.data = data;
  spec.optimizer.clip_norm = 0;
  return spec;
}

RunSpec served(int data, int servers, const std::string& optimizer = "adamw") {
  RunSpec spec = plain(data);
  spec.sync.replication = ReplicationKind::ParameterServer;
  spec.sync.servers = servers;
  spec.optimizer.kind = value_of<OptimizerKind>(optimizer).value();
  return spec;
}

void expect_same_training(const LayoutResult& got, const LayoutResult& want) {
  for (size_t i = 0; i < want.losses.size(); ++i) EXPECT_NEAR(got.losses[i], want.losses[i], 1e-10);
  EXPECT_EQ(got.sample_hashes, want.sample_hashes);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
}

TEST(ServedReplica, BulkSynchronousIsTheSerialRun) {
  const LayoutResult serial = train_layout(plain(1));
  for (const auto& [data, servers] : {std::pair(1, 1), {2, 3}, {4, 1}, {8, 2}}) {
    SCOPED_TRACE(testing::Message() << data << " workers, " << servers << " servers");
    expect_same_training(train_layout(served(data, servers)), serial);
  }
}

TEST(ServedReplica, OtherOptimizersDoNotDependOnTheLayoutEither) {
  for (const char* optimizer : {"sgd", "adagrad"}) {
    const LayoutResult one = train_layout(served(1, 1, optimizer));
    EXPECT_LT(one.losses.back(), one.losses.front());
    expect_same_training(train_layout(served(4, 2, optimizer)), one);
  }
}

TEST(ServedReplica, SeveralServersAndSeveralRunsAreTheSameBits) {
  const LayoutResult once = train_layout(served(4, 1));
  for (const int servers : {1, 5}) EXPECT_TRUE(same_bits(train_layout(served(4, servers)).params, once.params));
}

class ServedCheckpoint : public ScratchFolder {
 protected:
  void save_after_two_steps(const RunSpec& spec) {
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.step();
      trainer.step();
      trainer.save(folder_ + "/step-2", "");
    });
  }
  std::map<std::string, at::Tensor> after_one_more(const RunSpec& spec) {
    std::map<std::string, at::Tensor> params;
    std::mutex lock;
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.load(folder_ + "/step-2");
      trainer.step();
      const std::scoped_lock hold(lock);
      collect(trainer, params, Held::Weights);
    });
    return params;
  }
};

TEST_F(ServedCheckpoint, GoesOnWithOtherServersOrWithout) {
  const LayoutResult want = train_layout(plain(1));
  save_after_two_steps(served(2, 2));
  for (const RunSpec& spec : {served(4, 3), served(1, 1), plain(2)}) {
    EXPECT_LT(largest_difference(after_one_more(spec), want.params), 1e-10);
  }
  save_after_two_steps(plain(2));
  EXPECT_LT(largest_difference(after_one_more(served(2, 2)), want.params), 1e-10);
}

TEST_F(ServedCheckpoint, HoldsAdagradsSums) {
  const LayoutResult want = train_layout(served(1, 1, "adagrad"));
  save_after_two_steps(served(2, 2, "adagrad"));
  EXPECT_LT(largest_difference(after_one_more(served(4, 1, "adagrad")), want.params), 1e-10);
}

TEST_F(ServedCheckpoint, OfReplicasThatRunApartHoldsAllPushes) {
  for (const char* consistency : {"ssp", "asp"}) {
    RunSpec spec = served(4, 2);
    spec.sync.consistency = value_of<Consistency>(consistency).value();
    spec.sync.staleness = 1;
    spec.sync.pull_every = 2;
    spec.train.steps = 12;
    std::mutex lock;
    double before = 0, after = 0;
    std::map<std::string, at::Tensor> params[4];
    on_every_rank(spec, [&](Trainer& trainer) {
      const int rank = trainer.groups().world.rank();
      const double at_first = trainer.evaluate();
      for (int step = 0; step < spec.train.steps; ++step) trainer.step();
      const double at_last = trainer.evaluate();
      if (rank == 0) before = at_first, after = at_last;
      trainer.save(folder_ + "/step-2", "");
      const std::scoped_lock hold(lock);
      collect(trainer, params[rank], Held::Weights);
    });
    EXPECT_LT(after, before);
    for (int rank = 1; rank < 4; ++rank) EXPECT_TRUE(same_bits(params[rank], params[0]));
  }
}

// By plain descent, gradients added up over three steps and pushed are one step on all their samples, at three times
// the rate. Nothing but an evaluation, a checkpoint and what they end makes the pushes here.
TEST_F(ServedCheckpoint, HoldsTheGradientsThatWereNotPushedYet) {
  RunSpec all_at_once = served(1, 1, "sgd");
  all_at_once.optimizer.momentum = all_at_once.optimizer.weight_decay = 0;
  all_at_once.optimizer.schedule = RateSchedule::Constant;
  RunSpec held_back = all_at_once;
  all_at_once.train.batch *= 3;
  all_at_once.optimizer.lr *= 3;
  const LayoutResult want = train_layout(all_at_once);  // three steps
  for (const char* consistency : {"bsp", "ssp", "asp"}) {
    SCOPED_TRACE(consistency);
    RunSpec spec = held_back;
    spec.mesh.data = std::string(consistency) == "bsp" ? 2 : 1;
    spec.sync.consistency = value_of<Consistency>(consistency).value();
    spec.sync.push_every = 100;
    spec.train.steps = 9;
    std::map<std::string, at::Tensor> params;
    std::mutex lock;
    const auto three_steps = [](Trainer& trainer) {
      for (int step = 0; step < 3; ++step) trainer.step();
    };
    on_every_rank(spec, [&](Trainer& trainer) {
      three_steps(trainer);
      trainer.evaluate();
      three_steps(trainer);
      trainer.save(folder_ + "/step-6", "");
      trainer.step();  // undone by load()
      trainer.load(folder_ + "/step-6");
      three_steps(trainer);
      trainer.save(folder_ + "/step-9", "");
      const std::scoped_lock hold(lock);
      collect(trainer, params, Held::Weights);
    });
    EXPECT_LT(largest_difference(params, want.params), 1e-10);
    std::map<std::string, at::Tensor> resumed;
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.load(folder_ + "/step-6");
      three_steps(trainer);
      trainer.evaluate();
      const std::scoped_lock hold(lock);
      collect(trainer, resumed, Held::Weights);
    });
    EXPECT_LT(largest_difference(resumed, want.params), 1e-10);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
}

TEST(ServedReplica, AFailingRankEndsTheRunForAll) {
  EXPECT_THROW(on_every_rank(served(4, 2),
                             [&](Trainer& trainer) {
                               trainer.step();
                               if (trainer.groups().world.rank() == 1) throw RunError("out of paper");
                               trainer.step();
                             }),
               RunError);
}

}  // namespace
}  // namespace braid::train::served_replica_test
