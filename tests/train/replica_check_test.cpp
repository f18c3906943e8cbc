// Copies that differ are found and named, whatever axis they lie along; those of a run that is right never do.
#include "braid/train/replica_check.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/spec/run_spec.h"
#include "braid/train/run_replication.h"
#include "braid/train/step_schedule.h"
#include "tests/train/layout_run.h"

namespace braid::train::replica_check_test {
namespace {

RunSpec spec_on(const MeshSpec& mesh) {
  RunSpec spec = tiny_spec(2, 4 * mesh.data);
  spec.model.layers = 2;
  spec.mesh = mesh;
  spec.train.dtype = DType::Float32;
  return spec;
}

// Flips a bit of the first number: the rest may be padding.
void flip_a_bit(const at::Tensor& values) { *static_cast<unsigned char*>(values.mutable_data_ptr()) ^= 4; }

// The parts of a rank that holds copies.
struct RankParts {
  RankModel& model;
  optim::Optimizer& optimizer;
  int rank;
};

// Returns the error of all ranks once `damage` has been done on each; "" without one.
std::string heard(const RunSpec& spec, const std::function<void(const RankParts&)>& damage) {
  std::vector<std::string> all(static_cast<size_t>(mesh::DeviceMesh(spec.mesh).num_ranks()));
  run_ranks(static_cast<int>(all.size()), [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    const Groups groups(mesh::DeviceMesh(spec.mesh), StageLayout(step_schedule(spec)), world, spec::num_shards(spec));
    RankModel model(spec, groups);
    const auto replication = run_replication(spec, model);
    const auto optimizer =
        optim::make_optimizer(spec.optimizer, model.params(), groups.shards(), &groups.over({mesh::Axis::Tensor}));
    replication->updated();
    damage({model, *optimizer, world.rank()});
    all[static_cast<size_t>(world.rank())] =
        differing_copies(copies_held(model, *optimizer, *replication), world, model.order());
  });
  for (const std::string& one : all) EXPECT_EQ(one, all[0]);
  return all[0];
}

auto flipped_weight(int rank, const std::string& name) {
  return [rank, name](const RankParts& held) {
    if (held.rank == rank) flip_a_bit(held.model.params()[name].data.detach());
  };
}
auto flipped_state(int rank) {
  return [rank](const RankParts& held) {
    if (held.rank == rank) flip_a_bit(held.optimizer.states()[1].flat);
  };
}
void nothing(const RankParts&) {}

TEST(ReplicaCheck, TheOddOneOfThreeIsNamed) {
  const RunSpec spec = spec_on({.data = 3});
  EXPECT_EQ(heard(spec, nothing), "");
  EXPECT_EQ(heard(spec, flipped_weight(1, "blocks.1.ln_1.weight")),
            "rank 1: the copy of the weights of blocks.1.ln_1.weight differs from that of most of ranks 0, 1, 2");
  const std::string state = heard(spec, flipped_state(2));
  EXPECT_EQ(state.find("rank 2: the copy of the optimizer state of "), 0u) << state;
}

TEST(ReplicaCheck, OfTwoBothAreNamed) {
  const RunSpec spec = spec_on({.data = 2});
  EXPECT_EQ(heard(spec, flipped_weight(1, "blocks.0.ln_1.weight")),
            "the copies of the weights of blocks.0.ln_1.weight on ranks 0, 1 differ, and no majority says which are "
            "right");
  const std::string state = heard(spec, flipped_state(0));
  EXPECT_EQ(state.find("the copies of the optimizer state of "), 0u) << state;
  EXPECT_NE(state.find(" on ranks 0, 1 differ"), state.npos) << state;
}

TEST(ReplicaCheck, TheFirstParameterInModelOrderIsNamed) {
  const std::string fault = heard(spec_on({.data = 3}), [](const RankParts& held) {
    if (held.rank == 2) flip_a_bit(held.model.params()["blocks.1.ln_1.weight"].data.detach());
    if (held.rank == 0) flip_a_bit(held.model.params()["blocks.0.ln_2.weight"].data.detach());
  });
  EXPECT_EQ(fault.find("rank 0: the copy of the weights of blocks.0.ln_2.weight"), 0u) << fault;
}

// Tensor ranks hold norms alike, and the two ends of a pipeline a tied embedding.
TEST(ReplicaCheck, CopiesLieAlongOtherAxesToo) {
  const std::string tensor = heard(spec_on({.tensor = 2}), flipped_weight(1, "blocks.0.ln_1.weight"));
  EXPECT_NE(tensor.find("blocks.0.ln_1.weight on ranks 0, 1 differ"), tensor.npos) << tensor;
  const std::string tied = heard(spec_on({.pipe = 2}), flipped_weight(1, "wte.weight"));
  EXPECT_NE(tied.find("wte.weight on ranks 0, 1 differ"), tied.npos) << tied;
  RunSpec mirrored = spec_on({.pipe = 2});
  mirrored.train.batch = 8;
  mirrored.pipeline.schedule = "dualpipe";
  const std::string pair = heard(mirrored, flipped_weight(0, "blocks.0.ln_1.weight"));
  EXPECT_NE(pair.find("blocks.0.ln_1.weight on ranks 0, 1 differ"), pair.npos) << pair;
}

// Shards of two: ranks 0 and 2 have the same part.
TEST(ReplicaCheck, ShardedStatesHaveTheCopiesThatThereAre) {
  for (const int zero : {1, 3}) {
    RunSpec spec = spec_on({.data = 4});
    spec.sync.zero = zero;
    spec.sync.zero_group = 2;
    EXPECT_EQ(heard(spec, nothing), "");
    const std::string state = heard(spec, flipped_state(2));
    EXPECT_NE(state.find(" on ranks 0, 2 differ"), state.npos) << zero << ": " << state;
    spec.sync.zero_group = 4;
    EXPECT_EQ(heard(spec, flipped_state(2)), "") << "nobody has a copy";
  }
}

TEST(ReplicaCheck, MastersAreCompared) {
  RunSpec spec = spec_on({.data = 3});
  spec.train.dtype = DType::BFloat16;
  const std::string fault = heard(spec, [](const RankParts& held) {
    if (held.rank == 1) flip_a_bit(held.model.params().flat_master());
  });
  EXPECT_EQ(fault.find("rank 1: the copy of the master weights of "), 0u) << fault;
}

struct Kind {
  const char* name;
  MeshSpec mesh;
  void (*change)(RunSpec& spec) = [](RunSpec&) {};
  std::vector<bool> compared = {true, true, true};
};

void local_sgd(RunSpec& spec, ReplicationKind kind) {
  spec.sync.replication = kind;
  spec.sync.period = 2;
}

const std::vector<Kind> kKinds = {
    {"data", {.data = 3}},
    {"tensor", {.tensor = 2}},
    {"pipe, tied", {.pipe = 2}},
    {"all", {.pipe = 2, .data = 2, .tensor = 2}},
    {"dualpipe", {.pipe = 2}, [](RunSpec& spec) { spec.pipeline.schedule = "dualpipe", spec.train.batch = 8; }},
    {"pipedream",
     {.pipe = 2, .data = 2},
     [](RunSpec& spec) {
       spec.pipeline.schedule = "pipedream";
       spec.model.output_weights = OutputWeights::Untied;
     }},
    {"zero 1", {.data = 4}, [](RunSpec& spec) { spec.sync.zero = 1, spec.sync.zero_group = 2; }},
    {"zero 2", {.data = 2}, [](RunSpec& spec) { spec.sync.zero = 2; }},
    {"zero 3", {.data = 4}, [](RunSpec& spec) { spec.sync.zero = 3, spec.sync.zero_group = 2; }},
    {"bfloat16", {.data = 2}, [](RunSpec& spec) { spec.train.dtype = DType::BFloat16; }},
    {"compression", {.data = 2}, [](RunSpec& spec) { spec.sync.compression = CompressionKind::TopK; }},
    {"muon", {.data = 2, .tensor = 2}, [](RunSpec& spec) { spec.optimizer.kind = OptimizerKind::Muon; }},
    {"reproducible", {.pipe = 2, .data = 2}, [](RunSpec& spec) { spec.train.reduction = Reduction::Reproducible; }},
    {"local-sgd", {.data = 2}, [](RunSpec& spec) { local_sgd(spec, ReplicationKind::LocalSgd); }, {false, true, true}},
    {"diloco", {.data = 2}, [](RunSpec& spec) { local_sgd(spec, ReplicationKind::DiLoCo); }, {false, true, true}},
};

// The last step of a run ends with a meeting.
TEST(ReplicaCheck, ARunThatIsRightIsLeftAlone) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    RunSpec spec = spec_on(kind.mesh);
    kind.change(spec);
    on_every_rank(spec, [&](Trainer& trainer) {
      for (const bool compared : kind.compared) {
        trainer.step();
        EXPECT_EQ(trainer.check_replicas(), compared);
      }
    });
  }
}

// The damage is in one replica's weights, so from the next step on it is in everybody's gradients.
TEST(ReplicaCheck, ATrainerThrowsOnAllRanks) {
  on_every_rank(spec_on({.data = 3}), [](Trainer& trainer) {
    trainer.step();
    if (trainer.groups().world.rank() == 2) {
      flip_a_bit(trainer.model().params()["blocks.0.ln_1.weight"].data.detach());
    }
    trainer.step();
    try {
      trainer.check_replicas();
      ADD_FAILURE() << "the copies differ";
    } catch (const RunError& error) {
      const std::string want = "after step 2, rank 2: the copy of the weights of ";
      EXPECT_EQ(std::string(error.what()).find(want), 0u) << error.what();
    }
  });
}

}  // namespace
}  // namespace braid::train::replica_check_test
