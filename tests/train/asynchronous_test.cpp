// Asynchronous schedules against a serial program that replays their delays: one rank, the whole model, for every
// microbatch each stage's weights of the version that the rule names. Equal bit for bit.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/optim/lr_schedule.h"
#include "braid/spec/partition.h"
#include "braid/train/recorded_microbatches.h"
#include "tests/train/layout_run.h"

namespace braid::train::asynchronous_test {
namespace {

// Written out here, not taken from the schedule: microbatch k, stage s of n, minibatches of `group` microbatches.
using Version = int (*)(int k, int s, int n, int group);
// "PipeDream" (2019), section 3.3: stage s is n - 1 - s updates behind once the pipeline is full.
int own(int k, int s, int n, int) { return std::max(0, k - (n - 1 - s)); }
int vertical(int k, int, int n, int) { return std::max(0, k - (n - 1)); }
// "PipeDream-2BW" (2021), section 3.1.
int double_buffered(int k, int, int, int group) { return std::max(k / group - 1, 0); }

struct Case {
  std::string schedule, weights;
  int group;
  Version version;
  int data;
};

RunSpec spec_for(const Case& c) {
  constexpr int kMicrobatches = 8;
  RunSpec spec = tiny_spec(6, kMicrobatches * c.data);
  spec.model.output_weights = OutputWeights::Untied;
  spec.optimizer.clip_norm = 0;
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  spec.mesh = {.pipe = 4, .data = c.data};
  spec.pipeline.schedule = c.schedule;
  spec.pipeline.weights = value_of<StageWeights>(c.weights).value();
  spec.pipeline.group = c.group;
  return spec;
}

int stage_of(const std::string& param, const RunSpec& spec) {
  if (!param.starts_with("blocks.")) return param.starts_with("w") ? 0 : spec.mesh.pipe - 1;
  const int unit = 1 + 2 * std::stoi(param.substr(7));
  const auto first_unit = spec::stage_units(spec, spec.mesh.pipe);
  int stage = 0;
  while (first_unit[stage + 1] <= unit) ++stage;
  return stage;
}

// The serial program.
class Replay {
 public:
  Replay(const Case& c, Communicator& world)
      : case_(c),
        pipelined_(spec_for(c)),
        serial_(alone(pipelined_)),
        corpus_(tiny_corpus()),
        groups_(mesh::DeviceMesh(serial_.mesh), StageLayout::single(), world),
        model_(serial_, groups_),
        batches_(serial_, {corpus_.train, stream_key(serial_.train.seed, "samples")}, groups_),
        optimizer_(optim::make_optimizer(serial_.optimizer, model_.params())) {}

  void step(int64_t step) {
    const int per_rank = batches_.num_microbatches() / case_.data;
    versions_ = {model_.params().flat_data().detach().clone()};
    for (int update = 0; update * case_.group < per_rank; ++update) {
      model_.sink().begin_step(case_.group * case_.data);
      for (int data = 0; data < case_.data; ++data) {
        for (int i = 0; i < case_.group; ++i) pass(step, {update * case_.group + i, data, i}, per_rank);
      }
      const c10::AutoGradMode no_grad(false);
      model_.params().flat_data().copy_(versions_.back());
      const double rate = optim::learning_rate(serial_.optimizer, static_cast<int>(step), serial_.train.steps);
      optimizer_->step({rate, 1});
      versions_.push_back(model_.params().flat_data().detach().clone());
    }
  }

  std::map<std::string, at::Tensor> params() {
    std::map<std::string, at::Tensor> all;
    for (const param::Parameter& param : model_.params().params()) {
      all[param.name] = param.data.detach().narrow(0, 0, param.placement.global_shape[0]).clone();  // without padding
    }
    return all;
  }

 private:
  static RunSpec alone(RunSpec spec) {
    spec.mesh = {};
    return spec::with_parts(spec);
  }

  struct Place {
    int micro, data, in_update;
  };
  void pass(int64_t step, const Place& at, int per_rank) {
    {
      const c10::AutoGradMode no_grad(false);
      for (const param::Parameter& param : model_.params().params()) {
        const int stage = stage_of(param.name, pipelined_);
        const int version = case_.version(at.micro, stage, pipelined_.mesh.pipe, case_.group);
        param.data.detach().view({-1}).copy_(versions_.at(version).narrow(0, param.offset, param.num_elements()));
      }
    }
    nn::Microbatch microbatch = batches_.microbatch(step, at.data * per_rank + at.micro);
    microbatch.micro = at.data * case_.group + at.in_update;
    microbatch.loss_gradient = 1.0 / (case_.group * case_.data);
    compute_microbatch(model_, microbatch);
  }

  const Case case_;
  const RunSpec pipelined_, serial_;
  data::Corpus corpus_;
  Groups groups_;
  RankModel model_;
  BatchSource batches_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::deque<at::Tensor> versions_;  // of this step, flat
};

std::map<std::string, at::Tensor> replayed(const Case& c) {
  std::map<std::string, at::Tensor> params;
  run_ranks(1, [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    Replay replay(c, world);
    for (int step = 0; step < spec_for(c).train.steps; ++step) replay.step(step);
    params = replay.params();
  });
  return params;
}

TEST(Asynchronous, EqualsASerialProgramWithItsDelays) {
  for (const Case& c : {Case{"pipedream", "own", 1, own, 1}, Case{"pipedream", "vertical", 1, vertical, 1},
                        Case{"pipedream", "own", 1, own, 2}, Case{"pipedream-2bw", "own", 4, double_buffered, 1},
                        Case{"pipedream-2bw", "own", 4, double_buffered, 2}}) {
    SCOPED_TRACE(cat(c.schedule, " ", c.weights, " data ", c.data));
    EXPECT_TRUE(same_bits(train_layout(spec_for(c)).params, replayed(c)));
  }
}

// The delays matter: each rule trains other weights than the others, and than no delay.
TEST(Asynchronous, DelaysChangeTheTraining) {
  const Case c{"pipedream", "own", 1, own, 1};
  const auto trained = train_layout(spec_for(c)).params;
  for (const Version other : {+[](int k, int, int, int) { return k; }, vertical, double_buffered}) {
    Case wrong = c;
    wrong.version = other;
    EXPECT_GT(largest_difference(trained, replayed(wrong)), 1e-4);
  }
}

TEST(Asynchronous, StalenessIsReported) {
  for (const auto& [schedule, group, staleness] :
       {std::tuple{"pipedream", 0, 3}, {"pipedream-2bw", 4, 1}, {"1f1b", 0, 0}}) {
    RunSpec spec = spec_for({schedule, "own", group, own, 1});
    on_every_rank(spec, [&, want = staleness](Trainer& trainer) { EXPECT_EQ(trainer.step().staleness, want); });
  }
}

}  // namespace
}  // namespace braid::train::asynchronous_test
