// Replicas that train apart, against a program that trains them one after another in one process.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/optim/lr_schedule.h"
#include "braid/spec/describe.h"
#include "braid/train/recorded_microbatches.h"
#include "tests/support/sampled.h"
#include "tests/train/local_run.h"

namespace braid::train::local_sgd_test {
namespace {

// The training of the mesh, written out.
class Replay {
 public:
  Replay(const RunSpec& spec, Communicator& world)
      : spec_(spec),
        serial_(alone(spec)),
        corpus_(tiny_corpus()),
        groups_(mesh::DeviceMesh(MeshSpec{}), StageLayout::single(), world) {
    for (int r = 0; r < spec.mesh.data; ++r) {
      models_.push_back(std::make_unique<RankModel>(serial_, groups_));
      optimizers_.push_back(optim::make_optimizer(serial_.optimizer, models_[r]->params()));
    }
    batches_ = std::make_unique<BatchSource>(serial_, SampleSource{corpus_.train, training_order(spec.train)}, groups_);
    anchor_ = weights(0).clone();
    momentum_ = at::zeros_like(anchor_);
  }

  void step(int64_t step) {
    losses.push_back(0);
    for (int r = 0; r < spec_.mesh.data; ++r) accumulate(step, r);
    const c10::AutoGradMode no_grad(false);
    const bool warm = step < spec_.sync.period_warmup;
    if (warm) {
      at::Tensor mean = at::zeros_like(gradients(0));
      for (size_t r = 0; r < models_.size(); ++r) mean.add_(gradients(r), 1.0 / static_cast<double>(models_.size()));
      for (size_t r = 0; r < models_.size(); ++r) gradients(r).copy_(mean);
    }
    const double rate = optim::learning_rate(serial_.optimizer, static_cast<int>(step), serial_.train.steps);
    for (size_t r = 0; r < models_.size(); ++r) {
      const double norm = gradients(r).norm().item<double>();
      optimizers_[r]->step({rate, optim::clip_scale(norm, serial_.optimizer.clip_norm)});
    }
    if (warm) anchor_.copy_(weights(0));
    const int64_t local_steps = step + 1 - spec_.sync.period_warmup;
    if (!warm && (local_steps % spec_.sync.period == 0 || step + 1 == spec_.train.steps)) synchronise();
  }

  std::map<std::string, at::Tensor> params() {
    std::map<std::string, at::Tensor> all;
    for (const param::Parameter& param : models_[0]->params().params()) all[param.name] = param.data.detach().clone();
    return all;
  }
  std::vector<double> losses;

 private:
  static RunSpec alone(RunSpec spec) {
    spec.mesh = {};
    spec.sync = {};
    return spec;
  }
  const at::Tensor& weights(size_t r) { return models_[r]->params().flat_data(); }
  const at::Tensor& gradients(size_t r) { return models_[r]->params().flat_grads(); }

  void accumulate(int64_t step, int r) {
    models_[r]->sink().begin_step(kPerReplica);
    for (int k = 0; k < kPerReplica; ++k) {
      nn::Microbatch microbatch = batches_->microbatch(step, r * kPerReplica + k);
      microbatch.micro = k;
      microbatch.loss_gradient = 1.0 / kPerReplica;
      const at::Tensor loss = compute_microbatch(*models_[r], microbatch);
      losses.back() += loss.item<double>() / (kPerReplica * spec_.mesh.data);
    }
  }

  void synchronise() {
    const double share = 1.0 / static_cast<double>(models_.size());
    at::Tensor next = at::zeros_like(anchor_);
    if (spec_.sync.replication == ReplicationKind::LocalSgd) {
      for (size_t r = 0; r < models_.size(); ++r) next.add_(weights(r), share);
    } else {  // torch.optim.SGD(lr, momentum, nesterov=True) on the mean of anchor - weights
      at::Tensor gradient = at::zeros_like(anchor_);
      for (size_t r = 0; r < models_.size(); ++r) gradient.add_(anchor_ - weights(r), share);
      momentum_ = momentum_ * spec_.sync.outer_momentum + gradient;
      next = anchor_ - (gradient + momentum_ * spec_.sync.outer_momentum) * spec_.sync.outer_lr;
    }
    anchor_ = next.clone();
    for (size_t r = 0; r < models_.size(); ++r) weights(r).copy_(next);
  }

  const RunSpec spec_, serial_;
  data::Corpus corpus_;
  Groups groups_;
  std::vector<std::unique_ptr<RankModel>> models_;
  std::vector<std::unique_ptr<optim::Optimizer>> optimizers_;
  std::unique_ptr<BatchSource> batches_;
  at::Tensor anchor_, momentum_;
};

void expect_the_replay(const RunSpec& spec) {
  run_ranks(1, [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    Replay replay(spec, world);
    for (int step = 0; step < spec.train.steps; ++step) replay.step(step);
    const LayoutResult got = train_layout(spec);
    for (int step = 0; step < spec.train.steps; ++step) EXPECT_NEAR(got.losses[step], replay.losses[step], 1e-10);
    EXPECT_LT(largest_difference(got.params, replay.params()), 1e-10);
  });
}

TEST(LocalSgd, TrainsWhatReplicasTrainOneAfterAnother) {
  const std::vector<MeshSpec> meshes = {
      {.data = 2}, {.data = 3}, {.pipe = 2, .data = 2}, {.data = 2, .tensor = 2}, {.pipe = 2, .data = 2, .tensor = 2}};
  std::vector<RunSpec> all;
  for (const MeshSpec& mesh : meshes) {
    for (const char* replication : {"local-sgd", "diloco"}) {
      for (const int period : {2, 3}) all.push_back(local_spec(replication, period, mesh));
    }
  }
  for (const RunSpec& spec : sampled(all, 3)) {
    SCOPED_TRACE(cat(spec.sync.replication, " period ", spec.sync.period, " pipe ", spec.mesh.pipe, " data ",
                     spec.mesh.data, " tensor ", spec.mesh.tensor));
    expect_the_replay(spec);
  }
}

TEST(LocalSgd, SumsGradientsWhileItWarmsUp) {
  for (const char* replication : {"local-sgd", "diloco"}) {
    RunSpec spec = local_spec(replication, 2, {.pipe = 2, .data = 2});
    spec.sync.period_warmup = 2;
    SCOPED_TRACE(replication);
    expect_the_replay(spec);
    spec.sync.period_warmup = spec.train.steps;
    RunSpec summed = spec;
    summed.sync = {};
    EXPECT_LT(largest_difference(train_layout(spec).params, train_layout(summed).params), 1e-10);
  }
}

TEST(LocalSgd, TheOuterOptimizerThatTakesTheAverageIsAveraging) {
  for (const int period : {1, 2}) {
    RunSpec averaging = local_spec("local-sgd", period, {.data = 2}), outer = local_spec("diloco", period, {.data = 2});
    outer.sync.outer_lr = 1;
    outer.sync.outer_momentum = 0;
    EXPECT_LT(largest_difference(train_layout(outer).params, train_layout(averaging).params), 1e-10);
    outer.sync.outer_momentum = 0.5;
    EXPECT_GT(largest_difference(train_layout(outer).params, train_layout(averaging).params), 1e-4);
  }
}

// Windows of six tokens and the next: all are the same.
data::Corpus one_sample() {
  std::vector<int> tokens;
  for (int i = 0; i < 601; ++i) tokens.push_back(i % 6 * 3);
  const auto memory = std::make_shared<data::MemoryTokens>(19);
  memory->add_document(tokens);
  return {{{memory, 1}}, {}, 1};
}

TEST(LocalSgd, ReplicasWithTheSameDataAreOneReplica) {
  for (const char* replication : {"local-sgd", "diloco"}) {
    RunSpec spec = local_spec(replication, 2, {.data = 3}), serial = local_spec("all-reduce", 1, {});
    spec.sync.outer_lr = 1;
    spec.sync.outer_momentum = 0;
    const LayoutResult got = train_locally(spec, one_sample()), want = train_locally(serial, one_sample());
    for (int step = 0; step < spec.train.steps; ++step) EXPECT_NEAR(got.losses[step], want.losses[step], 1e-10);
    EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
  }
}

TEST(LocalSgd, SendsTheParametersOncePerPeriod) {
  RunSpec spec = local_spec("local-sgd", 3, {.data = 4});
  spec.train.steps = 7;
  spec.sync.period_warmup = 1;
  on_every_rank(spec, [&](Trainer& trainer) {
    const int64_t all = 2 * static_cast<int64_t>(trainer.model().params().flat_master().nbytes()) * 3 / 4;
    std::vector<int64_t> sent;
    for (int step = 0; step < spec.train.steps; ++step) sent.push_back(trainer.step().sync_bytes);
    EXPECT_NEAR(static_cast<double>(sent[0]), static_cast<double>(all), 64);  // of gradients, bucket by bucket
    sent[0] = all;
    EXPECT_EQ(sent, (std::vector<int64_t>{all, 0, 0, all, 0, 0, all}));
  });
}

// From its second step on, rank 1 has a gradient that is infinite.
void poison(Trainer& trainer) {
  const auto ready = trainer.model().sink().on_ready;
  trainer.model().sink().on_ready = [&trainer, ready](const param::Parameter& param) {
    if (trainer.groups().world.rank() == 1 && trainer.num_steps() >= 1) {
      param.main_grad.fill_(std::numeric_limits<double>::infinity());
    }
    ready(param);
  };
}

TEST(LocalSgd, AReplicaThatDivergesStopsAllWithTheSameError) {
  std::vector<std::string> messages;
  std::mutex lock;
  on_every_rank(local_spec("local-sgd", 3, {.data = 3}), [&](Trainer& trainer) {
    poison(trainer);
    trainer.step();
    try {
      trainer.step();
    } catch (const RunError& error) {
      const std::scoped_lock hold(lock);
      messages.push_back(error.what());
    }
  });
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(messages[0], messages[2]);
  EXPECT_NE(messages[0].find("step 2"), std::string::npos) << messages[0];
}

TEST(LocalSgd, AnOverflowOnOneReplicaCostsAllTheStep) {
  RunSpec spec = local_spec("local-sgd", 3, {.data = 2});
  spec.train.dtype = DType::Float16;
  spec.train.loss_scale = 16;
  on_every_rank(spec, [&](Trainer& trainer) {
    poison(trainer);
    EXPECT_FALSE(trainer.step().skipped);
    const at::Tensor before = trainer.model().params().flat_master().clone();
    const StepReport report = trainer.step();
    EXPECT_TRUE(report.skipped);
    EXPECT_TRUE(trainer.model().params().flat_master().equal(before));
  });
}

}  // namespace
}  // namespace braid::train::local_sgd_test
