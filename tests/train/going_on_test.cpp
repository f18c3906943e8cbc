// A run that is saved in its middle and goes on in new trainers is, bit for bit, the run that was not: every kind of
// state that a training has. What has tests of its own: float16's scale (precision_test.cpp), compression
// (reduction_test.cpp), local SGD and DiLoCo (local_sgd_resume_test.cpp), optimizers (optimizer_layouts_test.cpp).
#include <gtest/gtest.h>

#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/describe.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::going_on_test {
namespace {

struct Kind {
  const char* name;
  void (*change)(RunSpec& spec);
};

void data_ranks(RunSpec& spec, int zero) {
  spec.mesh.data = 2;
  spec.sync.zero = zero;
}
void pipeline(RunSpec& spec, const char* schedule) {
  spec.mesh.pipe = 2;
  spec.pipeline.schedule = schedule;
}
void servers(RunSpec& spec, int push_every) {
  spec.mesh.data = 2;
  spec.sync.replication = ReplicationKind::ParameterServer;
  spec.sync.servers = 2;
  spec.sync.push_every = push_every;
  spec.optimizer.clip_norm = 0;
}

const std::vector<Kind> kKinds = {
    {"plain", [](RunSpec&) {}},
    {"dropout", [](RunSpec& spec) { spec.model.dropout = 0.2; }},
    {"dropout on ranks",
     [](RunSpec& spec) {
       spec.model.dropout = 0.2;
       spec.mesh = {.pipe = 2, .data = 2};
     }},
    {"documents", [](RunSpec& spec) { spec.data.attention = AttentionMask::Document; }},
    {"zero 1", [](RunSpec& spec) { data_ranks(spec, 1); }},
    {"zero 2", [](RunSpec& spec) { data_ranks(spec, 2); }},
    {"zero 3", [](RunSpec& spec) { data_ranks(spec, 3); }},
    {"tensor", [](RunSpec& spec) { spec.mesh.tensor = 2; }},
    {"gpipe", [](RunSpec& spec) { pipeline(spec, "gpipe"); }},
    {"1f1b", [](RunSpec& spec) { pipeline(spec, "1f1b"); }},
    {"interleaved", [](RunSpec& spec) { pipeline(spec, "interleaved"); }},
    {"zb-h1", [](RunSpec& spec) { pipeline(spec, "zb-h1"); }},
    {"zb-v", [](RunSpec& spec) { pipeline(spec, "zb-v"); }},
    {"dualpipe", [](RunSpec& spec) { pipeline(spec, "dualpipe"); }},
    {"pipedream", [](RunSpec& spec) { pipeline(spec, "pipedream"); }},
    {"pipedream-2bw", [](RunSpec& spec) { pipeline(spec, "pipedream-2bw"); }},
    {"servers", [](RunSpec& spec) { servers(spec, 1); }},
    {"servers, pushes that meet the save", [](RunSpec& spec) { servers(spec, 2); }},
};

struct Trained {
  std::vector<double> losses;
  std::vector<uint64_t> samples;
  std::map<std::string, at::Tensor> masters;
};

class GoingOn : public ScratchFolder {
 protected:
  // Steps up to `until`, after what `from` holds.
  static Trained trained(const RunSpec& spec, int until, const std::string& from, const std::string& to) {
    Trained result;
    std::mutex lock;
    on_every_rank(spec, [&](Trainer& trainer) {
      if (!from.empty()) trainer.load(from);
      while (trainer.num_steps() < until) {
        const StepReport report = trainer.step();
        if (trainer.groups().world.rank() != 0) continue;
        result.losses.push_back(report.loss);
        result.samples.push_back(report.sample_hash);
      }
      if (!to.empty()) trainer.save(to, spec::to_toml(spec));
      const std::scoped_lock hold(lock);
      collect(trainer, result.masters, Held::Masters);
    });
    return result;
  }
};

RunSpec spec_of(const Kind& kind) {
  RunSpec spec = tiny_spec(2, 8);
  spec.model.vocab = 257;
  spec.data.paths = {"text"};  // for the configuration that checkpoints hold; never opened
  spec.train.dtype = DType::Float32;
  spec.train.steps = 4;
  kind.change(spec);
  if (spec.pipeline.schedule.starts_with("pipedream")) spec.model.output_weights = OutputWeights::Untied;
  return spec;
}

TEST_F(GoingOn, EveryKindHasTheBitsOfTheRunThatWasNotInterrupted) {
  for (const Kind& kind : sampled(kKinds, 3)) {
    SCOPED_TRACE(kind.name);
    const RunSpec spec = spec_of(kind);
    const Trained want = trained(spec, 4, "", "");
    const Trained first = trained(spec, 2, "", path(kind.name));
    const Trained rest = trained(spec, 4, path(kind.name), "");
    ASSERT_EQ(rest.losses.size(), 2u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(i < 2 ? first.losses[i] : rest.losses[i - 2], want.losses[i]) << "step " << i + 1;
      EXPECT_EQ(i < 2 ? first.samples[i] : rest.samples[i - 2], want.samples[i]) << "step " << i + 1;
    }
    EXPECT_TRUE(same_bits(rest.masters, want.masters));
  }
}

class Changes : public GoingOn {
 protected:
  std::string refusal(const RunSpec& spec) {
    try {
      trained(spec, 3, path("saved"), "");
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
};

TEST_F(Changes, OfTheTrainingAreRefusedTogetherUnlessTheyAreAllowed) {
  const RunSpec was = spec_of(kKinds[0]);
  trained(was, 2, "", path("saved"));
  RunSpec is = was;
  is.optimizer.lr = 0.02;
  is.optimizer.clip_norm = 0;
  is.model.dropout = 0.1;
  is.train.allow_change = {"model.dropout"};
  const std::string as_in =
      cat(": must be as in ", path("saved"), ", unless it is allowed to change; nearest valid is ");
  EXPECT_EQ(refusal(is), cat("optimizer.lr = 0.02", as_in, "0.01\noptimizer.clip_norm = 0", as_in,
                             "0.5\ntrain.allow_change = [\"model.dropout\"]: would have to name what is to change: "
                             "train.allow_change = [\"model.dropout\", \"optimizer.lr\", \"optimizer.clip_norm\"]"));
  is.train.allow_change = {"model.dropout", "optimizer.lr", "optimizer.clip_norm"};
  EXPECT_EQ(refusal(is), "");
  is.train.seed = 7;
  EXPECT_EQ(refusal(is), cat("train.seed = 7: must be as in ", path("saved"), "; nearest valid is 1"));
}

// Changes that keep the training the same are free; so is another way of saying where the decay ends.
TEST_F(Changes, OfTheLayoutAreFree) {
  RunSpec was = spec_of(kKinds[0]);
  was.optimizer.decay_steps = 4;
  trained(was, 2, "", path("saved"));
  RunSpec is = was;
  is.mesh = {.pipe = 2, .data = 2};
  is.pipeline.schedule = "zb-h1";
  is.train.microbatch = 2;
  is.train.save_every = 1;
  is.sync.zero = 1;
  is.memory.recompute = "full";
  is.optimizer.decay_steps = 0;
  EXPECT_EQ(refusal(is), "");
  is.train.steps = 5;
  EXPECT_NE(refusal(is).find("optimizer.decay_steps = 5: must be as in"), std::string::npos) << refusal(is);
  is.train.steps = 4;
  is.model.output_weights = was.model.output_weights;
  is.pipeline.schedule = "pipedream";
  EXPECT_NE(refusal(is).find("pipeline.schedule = \"pipedream\": must be as in"), std::string::npos) << refusal(is);
}

}  // namespace
}  // namespace braid::train::going_on_test
