// Gradient norms that are right pass train.check on every layout, and faults of the communication do not.
#include "braid/train/norm_check.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/train/faulty_communicator.h"
#include "tests/train/layout_run.h"

namespace braid::train::norm_check_test {
namespace {

RunSpec spec_on(const MeshSpec& mesh) {
  RunSpec spec = tiny_spec(2, 4 * mesh.data);
  spec.model.layers = 2;
  spec.model.context = 8;
  spec.mesh = mesh;
  spec.train.dtype = DType::Float32;
  spec.train.check = NormCheck::EveryStep;
  return spec;
}

struct Kind {
  const char* name;
  MeshSpec mesh;
  void (*change)(RunSpec& spec) = [](RunSpec&) {};
};

void dualpipe(RunSpec& spec) {
  spec.pipeline.schedule = "dualpipe";
  spec.train.batch = 8;
}

void pipedream(RunSpec& spec) {
  spec.pipeline.schedule = "pipedream";
  spec.model.output_weights = OutputWeights::Untied;
}

void zero(RunSpec& spec, int stage, int group) {
  spec.sync.zero = stage;
  spec.sync.zero_group = group;
}

// Two tensor ranks share a key head.
void shared_heads(RunSpec& spec) {
  spec.model.family = ModelFamily::Llama;
  spec.model.heads = 4;
  spec.model.width = 16;
  spec.model.kv_heads = 2;
  spec.model.ffn = 24;
  spec.mesh.sequence_parallel = true;
}

void local_sgd(RunSpec& spec, ReplicationKind kind) {
  spec.sync.replication = kind;
  spec.sync.period = 2;
}

const std::vector<Kind> kKinds = {
    {"one rank", {}},
    {"data", {.data = 3}},
    {"tensor", {.tensor = 2}},
    {"sequence parallel", {.tensor = 2, .sequence_parallel = true}},
    {"pipe, tied", {.pipe = 2}},
    {"all", {.pipe = 2, .data = 2, .tensor = 2, .sequence_parallel = true}},
    {"dualpipe", {.pipe = 2}, dualpipe},
    {"dualpipe, data, zero 1", {.pipe = 2, .data = 2}, [](RunSpec& spec) { dualpipe(spec), zero(spec, 1, 2); }},
    {"pipedream", {.pipe = 2, .data = 2}, pipedream},
    {"zero 1", {.data = 4}, [](RunSpec& spec) { zero(spec, 1, 2); }},
    {"zero 2", {.data = 2, .tensor = 2}, [](RunSpec& spec) { zero(spec, 2, 2); }},
    {"zero 3, pipe", {.pipe = 2, .data = 2}, [](RunSpec& spec) { zero(spec, 3, 2); }},
    {"shared key heads", {.tensor = 4}, shared_heads},
    {"shared key heads, zero 2", {.data = 2, .tensor = 4}, [](RunSpec& spec) { shared_heads(spec), zero(spec, 2, 2); }},
    {"frozen", {.data = 2}, [](RunSpec& spec) { spec.optimizer.groups = {{.match = "w?e.weight", .frozen = true}}; }},
    {"muon", {.data = 2, .tensor = 2}, [](RunSpec& spec) { spec.optimizer.kind = OptimizerKind::Muon; }},
    {"bfloat16", {.data = 2, .tensor = 2}, [](RunSpec& spec) { spec.train.dtype = DType::BFloat16; }},
    {"float64", {.pipe = 2, .tensor = 2}, [](RunSpec& spec) { spec.train.dtype = DType::Float64; }},
    {"compression", {.data = 2}, [](RunSpec& spec) { spec.sync.compression = CompressionKind::TopK; }},
    {"reproducible", {.pipe = 2, .data = 2}, [](RunSpec& spec) { spec.train.reduction = Reduction::Reproducible; }},
    {"local-sgd", {.data = 2}, [](RunSpec& spec) { local_sgd(spec, ReplicationKind::LocalSgd); }},
    {"diloco", {.data = 2, .tensor = 2}, [](RunSpec& spec) { local_sgd(spec, ReplicationKind::DiLoCo); }},
};

TEST(NormCheck, PassesOnEveryLayout) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    RunSpec spec = spec_on(kind.mesh);
    kind.change(spec);
    EXPECT_NO_THROW(on_every_rank(spec, [](Trainer& trainer) {
      for (int step = 0; step < 3; ++step) EXPECT_GT(trainer.step().grad_norm, 0);
    }));
  }
}

TEST(NormCheck, ChangesNoBit) {
  for (const MeshSpec& mesh : {MeshSpec{.data = 2}, MeshSpec{.pipe = 2, .tensor = 2}}) {
    RunSpec spec = spec_on(mesh);
    const LayoutResult checked = train_layout(spec);
    spec.train.check = NormCheck::Off;
    const LayoutResult unchecked = train_layout(spec);
    EXPECT_TRUE(same_bits(checked.params, unchecked.params));
    EXPECT_EQ(checked.grad_norms, unchecked.grad_norms);
  }
}

// Returns the error of all ranks in the first `num_steps` steps, "" without one. `fault_at` is the fault of a rank in a
// step, counted from 1.
std::string heard(const RunSpec& spec, int num_steps, const std::function<Fault(int rank, int64_t step)>& fault_at) {
  const data::Corpus corpus = tiny_corpus();
  std::vector<std::string> all(static_cast<size_t>(num_ranks(spec.mesh)));
  run_ranks(static_cast<int>(all.size()), [&](Communicator& ranks) {
    at::get_num_threads();
    at::set_num_threads(1);
    Fault fault;
    FaultyCommunicator world(ranks, fault);
    Trainer trainer(spec, corpus, world);
    try {
      for (int step = 1; step <= num_steps; ++step) {
        fault = fault_at(world.rank(), step);
        trainer.step();
      }
    } catch (const RunError& error) {
      all[static_cast<size_t>(world.rank())] = error.what();
    }
  });
  for (const std::string& one : all) EXPECT_EQ(one, all[0]);
  return all[0];
}

auto on_rank(int rank, const Fault& fault) {
  return [=](int at, int64_t) { return at == rank ? fault : Fault{}; };
}
auto on_all(const Fault& fault) {
  return [=](int, int64_t) { return fault; };
}

void expect_norms(const std::string& why, int rank) {
  EXPECT_TRUE(why.starts_with(cat("step 1: the gradient norm of rank ", rank, " is "))) << why;
  EXPECT_NE(why.find(" formed tensor by tensor"), std::string::npos) << why;
}

void expect_copies(const std::string& why, const std::string& name) {
  EXPECT_NE(why.find(cat("; the copies of the gradient of ", name, " differ: its norm is ")), std::string::npos) << why;
}

TEST(NormCheck, FindsPartsOfTheNormThatCountTwice) {
  const Fault twice{"gradient norm", FaultKind::Doubled};
  for (const MeshSpec& mesh : {MeshSpec{.tensor = 2}, MeshSpec{.pipe = 2}, MeshSpec{.data = 2, .tensor = 2}}) {
    const std::string why = heard(spec_on(mesh), 1, on_all(twice));
    expect_norms(why, 0);
    EXPECT_EQ(why.find("copies"), std::string::npos) << why;
  }
  expect_norms(heard(spec_on({.data = 2, .tensor = 2}), 1, on_rank(3, twice)), 3);
}

TEST(NormCheck, FindsASumOfNormsThatShardsLeaveOut) {
  RunSpec spec = spec_on({.data = 2});
  for (const int stage : {1, 2, 3}) {
    spec.sync.zero = stage;
    expect_norms(heard(spec, 1, on_all({"gradient norm", FaultKind::LeftOut})), 0);
  }
}

TEST(NormCheck, FindsAScaledBucket) {
  RunSpec spec = spec_on({.data = 3});
  const std::string why = heard(spec, 1, on_rank(1, {"gradient bucket 0", FaultKind::Doubled}));
  EXPECT_NE(why.find("; the copies of the gradient of "), std::string::npos) << why;
  EXPECT_NE(why.find(" on ranks 0, 2"), std::string::npos) << why;
  EXPECT_NE(why.find(" on rank 1"), std::string::npos) << why;
}

TEST(NormCheck, FindsAnAllReduceThatIsLeftOut) {
  RunSpec spec = spec_on({.data = 2});
  expect_copies(heard(spec, 1, on_all({"gradient bucket", FaultKind::LeftOut})), "wte.weight");
  spec = spec_on({.data = 4});
  zero(spec, 2, 2);
  expect_copies(heard(spec, 1, on_all({"gradients of copies", FaultKind::LeftOut})), "wte.weight");
  expect_copies(heard(spec_on({.pipe = 2}), 1, on_all({"wte.weight", FaultKind::LeftOut})), "wte.weight");
  const MeshSpec tensor{.tensor = 2};
  expect_copies(heard(spec_on(tensor), 1, on_rank(1, {"blocks.1 linear mlp.up, backward", FaultKind::LeftOut})),
                "wpe.weight");
  const MeshSpec tokens{.tensor = 2, .sequence_parallel = true};
  expect_copies(heard(spec_on(tokens), 1, on_rank(0, {"blocks.1.ln_1.weight", FaultKind::LeftOut})),
                "blocks.1.ln_1.weight");
}

TEST(NormCheck, LooksAtTheStepsThatItIsSetTo) {
  const auto in_step_2 = [](int, int64_t step) {
    return step == 2 ? Fault{"gradient bucket", FaultKind::LeftOut} : Fault{};
  };
  RunSpec spec = spec_on({.data = 2});
  EXPECT_TRUE(heard(spec, 3, in_step_2).starts_with("step 2: "));
  spec.train.check = NormCheck::FirstStep;
  EXPECT_EQ(heard(spec, 3, in_step_2), "");
  EXPECT_TRUE(heard(spec, 3, on_all({"gradient bucket", FaultKind::LeftOut})).starts_with("step 1: "));
  spec.train.check = NormCheck::Off;
  EXPECT_EQ(heard(spec, 3, on_all({"gradient bucket", FaultKind::LeftOut})), "");
}

// The first steps overflow, and the first one that does not is checked.
TEST(NormCheck, WaitsForFiniteGradients) {
  RunSpec spec = spec_on({.data = 2});
  spec.train.steps = 20;
  spec.train.dtype = DType::Float16;
  spec.train.loss_scale = kLargestLossScale;
  spec.train.check = NormCheck::FirstStep;
  int finite = 0;
  on_every_rank(spec, [&](Trainer& trainer) {
    for (int step = 1; step <= 20; ++step) {
      const bool skipped = trainer.step().skipped;
      if (trainer.groups().world.rank() == 0 && !skipped && finite == 0) finite = step;
    }
  });
  ASSERT_GT(finite, 1);
  const std::string why = heard(spec, 20, on_rank(1, {"gradient bucket", FaultKind::Doubled}));
  EXPECT_TRUE(why.starts_with("step ")) << why;
  EXPECT_FALSE(why.starts_with("step 1:")) << why;
}

}  // namespace
}  // namespace braid::train::norm_check_test
