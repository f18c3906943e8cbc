// The optimizer's states on the host or its disk: what leaves the device, and what that takes.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/text.h"
#include "braid/layout/parameters.h"
#include "braid/plan/cluster_presets.h"
#include "braid/plan/data_exchange.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/problems.h"

namespace braid::plan::offload_test {
namespace {

Cluster node() { return cluster_preset("dgx-a100-80gb").value(); }

RunSpec run_to(Tier place) {
  RunSpec run;
  run.model = {.layers = 4, .heads = 8, .width = 1024, .context = 512, .vocab = 8192};
  run.train.batch = 16;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  run.mesh.data = 8;
  run.optimizer.clip_norm = 0;  // else old states are on the disk too
  run.memory.optimizer = place;
  return run;
}

TEST(Offload, MovesTheOptimizersStatesAndNothingElse) {
  for (const int zero : {0, 1}) {
    RunSpec here = run_to(Tier::Resident);
    here.sync.zero = zero;
    const Prediction kept = predict_run(here, node());
    for (const auto place : {Tier::Host, Tier::Disk}) {
      RunSpec there = run_to(place);
      there.sync.zero = zero;
      const Prediction moved = predict_run(there, node());
      RankMemory memory = kept.memory[0];
      EXPECT_EQ(moved.offloaded_bytes, 8 * memory.moments) << "of all ranks of the node";
      // On disk: three chunks of 4 MiB in memory of the masters and of both moments, which begin at a large page.
      memory.moments = place == Tier::Disk ? 3 * 3 * (4 << 20) + (2 << 20) : 0;
      EXPECT_EQ(moved.memory[0], memory);
      EXPECT_LE(least_rank_bytes(there, node(), FormulaSet::Braid), memory.total());
    }
    EXPECT_EQ(kept.offloaded_bytes, 0);
  }
}

// 4 bytes of a master and 2 of each moment. Masters fill the chunks of 4 MiB.
TEST(Offload, MovesBFloat16StatesInHalfTheBytes) {
  const RunSpec wide = run_to(Tier::Disk);
  RunSpec narrow = wide;
  narrow.optimizer.state_dtype = StateType::BFloat16;
  const Prediction all = predict_run(wide, node()), moved = predict_run(narrow, node());
  EXPECT_EQ(3 * moved.offloaded_bytes, 2 * all.offloaded_bytes);
  EXPECT_EQ(moved.memory[0].moments, 3 * 2 * (4 << 20) + (2 << 20));
  EXPECT_NEAR(3 * moved.seconds.optimizer, 2 * all.seconds.optimizer, all.seconds.optimizer / 100);
  narrow.train.dtype = DType::Float32;  // moments alone, which fill their chunks
  EXPECT_EQ(2 * predict_run(narrow, node()).offloaded_bytes, moved.offloaded_bytes);
  EXPECT_EQ(predict_run(narrow, node()).memory[0].moments, 3 * 2 * (4 << 20) + (2 << 20));
}

// 4 bytes of a master, and 1 + 1/16 of each moment. Masters fill the chunks of 4 MiB.
TEST(Offload, MovesStatesInCodes) {
  const RunSpec wide = run_to(Tier::Disk);
  RunSpec narrow = wide;
  narrow.optimizer.state_dtype = StateType::Int8;
  const Prediction all = predict_run(wide, node()), moved = predict_run(narrow, node());
  EXPECT_NEAR(static_cast<double>(moved.offloaded_bytes), 6.125 / 12 * static_cast<double>(all.offloaded_bytes), 8);
  EXPECT_EQ(moved.memory[0].moments, 3 * 6.125 / 4 * (4 << 20) + (2 << 20));
  narrow.train.dtype = DType::Float32;  // codes fill their chunks
  EXPECT_EQ(predict_run(narrow, node()).memory[0].moments, 3 * 2.125 * (4 << 20) + (2 << 20));
}

// A rank holds the units in use of what is moved. The rest of 2 bytes of a weight and 4 of its gradient is on the tier.
TEST(Offload, MovesGradientsAndParametersToo) {
  const RunSpec here = run_to(Tier::Disk);
  const Prediction kept = predict_run(here, node());
  RunSpec there = here;
  there.memory.gradients = there.memory.parameters = Tier::Disk;
  const Prediction moved = predict_run(there, node());
  EXPECT_GT(moved.memory[0].parameters, 0);
  EXPECT_LT(moved.memory[0].parameters, kept.memory[0].parameters);
  EXPECT_EQ(moved.memory[0].gradients, 0);
  EXPECT_EQ(moved.memory[0].activations, kept.memory[0].activations);
  EXPECT_EQ(moved.offloaded_bytes - kept.offloaded_bytes, 8 * (kept.memory[0].parameters + kept.memory[0].gradients));
  EXPECT_GT(moved.memory[0].communication, 0);
  EXPECT_LT(moved.memory[0].total(), kept.memory[0].total());
}

// Ranks have shards of what is on disk at every stage of ZeRO, also at those that keep it whole in memory.
TEST(Offload, HasShardsOfGradientsAndParameters) {
  const auto bytes = [](int zero, double clip_norm) {
    RunSpec run = run_to(Tier::Disk);
    run.sync.zero = zero;
    run.optimizer.clip_norm = clip_norm;
    run.memory.gradients = run.memory.parameters = Tier::Disk;
    return predict_run(run, node()).offloaded_bytes;
  };
  for (const double clip_norm : {0, 1}) {
    EXPECT_EQ(bytes(1, clip_norm), bytes(3, clip_norm));
    EXPECT_EQ(bytes(2, clip_norm), bytes(3, clip_norm));
  }
  EXPECT_EQ(bytes(0, 0), 8 * bytes(3, 0));
}

// Each microbatch reads the weights twice and writes its gradients, and all but the first read the sums before them.
TEST(Offload, MovesOfPassesThatComputationDoesNotHideCount) {
  RunSpec run = run_to(Tier::Disk);
  run.mesh.data = 1;
  run.memory.gradients = run.memory.parameters = Tier::Disk;
  const Prediction known = predict_run(run, node());
  RunSpec resident = run;
  resident.memory.gradients = resident.memory.parameters = Tier::Resident;
  const Prediction kept = predict_run(resident, node());
  const auto weights = static_cast<double>(kept.memory[0].parameters),
             sums = static_cast<double>(kept.memory[0].gradients);
  const double m = 16;
  const double moves = m * (2 * weights / 6e9 + sums / 4e9) + (m - 1) * sums / 6e9;
  const double exposed = known.seconds.data - kept.seconds.data;
  EXPECT_LE(exposed, moves);
  EXPECT_GE(exposed, moves - known.seconds.compute);
  EXPECT_GT(exposed, 0);
}

// Weights stay between uses in the memory that a limit leaves, and are then read once in a step.
TEST(Offload, WeightsStayWhereTheLimitLeavesMemory) {
  RunSpec run = run_to(Tier::Disk);
  run.mesh.data = 1;
  run.memory.gradients = run.memory.parameters = Tier::Disk;
  const Prediction each_use = predict_run(run, node());
  const double all = 2 * static_cast<double>(layout::count_params(run.model));
  const double least = static_cast<double>(each_use.most_bytes());
  double seconds = each_use.seconds.data;
  for (const double part : {0.5, 1.1}) {
    run.memory.limit_gb = std::ldexp((least + part * all) / 0.98, -30);
    const Prediction kept = predict_run(run, node());
    RankMemory memory = each_use.memory[0];
    memory.parameters = kept.memory[0].parameters;
    EXPECT_EQ(kept.memory[0], memory);
    EXPECT_GT(memory.parameters, each_use.memory[0].parameters);
    EXPECT_LE(static_cast<double>(memory.total()), least + part * all);
    EXPECT_LT(kept.seconds.data, seconds);
    seconds = kept.seconds.data;
  }
  EXPECT_NEAR(static_cast<double>(predict_run(run, node()).memory[0].parameters), all, 0.01 * all);
  run.memory.limit_gb = std::ldexp(least, -30);  // less than the margin of a limit
  EXPECT_EQ(predict_run(run, node()).memory, each_use.memory);
}

// 12 bytes of each parameter each way: over each device's own link at once, or all of a node one way after the other.
TEST(Offload, TakesWhatItsBytesTakeOnTheirWay) {
  const double states = static_cast<double>(predict_run(run_to(Tier::Resident), node()).memory[0].moments);
  const double norm = predict_run(run_to(Tier::Resident), node()).seconds.optimizer;
  const double to_host = predict_run(run_to(Tier::Host), node()).seconds.optimizer;
  const double to_disk = predict_run(run_to(Tier::Disk), node()).seconds.optimizer;
  EXPECT_NEAR(to_host, states / node().host.bytes_per_second, norm);
  EXPECT_NEAR(to_disk, 8 * states / 6e9 + 8 * states / 4e9, norm);
  EXPECT_GT(to_host, 10 * norm);
}

// The update hides the transfer behind the backward pass of the last microbatch. If it needs the norm, it is
// speculative: the disk has two copies of states, and the old values of the float32 weights that the rank updates.
TEST(Offload, OverlapsBackward) {
  for (const auto& [ranks, zero] : {std::pair(1, 0), std::pair(2, 1), std::pair(2, 2), std::pair(2, 3)}) {
    for (const DType dtype : {DType::BFloat16, DType::Float32}) {
      for (const double clip_norm : {0, 1}) {
        SCOPED_TRACE(cat(ranks, " ", zero, " ", dtype, " ", clip_norm));
        RunSpec run = run_to(Tier::Resident);
        run.train.dtype = dtype;
        run.mesh.data = ranks;
        run.sync.zero = zero;
        run.optimizer.clip_norm = clip_norm;
        const Prediction resident = predict_run(run, node());
        const double states = ranks * static_cast<double>(resident.memory[0].moments);
        const bool backs_up = clip_norm > 0 && dtype == DType::Float32;
        const double weights = 4 * states / 8;  // of float32, updated by all ranks
        const double backup = backs_up ? weights : 0;
        const double copies = clip_norm > 0 ? 2 : 1, whole = states / 6e9 + (states + backup) / 4e9;

        run.memory.optimizer = Tier::Disk;
        const Prediction early = predict_run(run, node());
        EXPECT_EQ(static_cast<double>(early.offloaded_bytes), copies * states + backup);
        const double hidden = whole - early.seconds.optimizer;
        EXPECT_GT(hidden, 0);
        EXPECT_LT(hidden, ranks * early.seconds.compute / 16) << "backward of one of 16 / ranks microbatches";
        const int64_t chunks = 3 * (4 << 20) * (dtype == DType::BFloat16 || backs_up ? 3 : 2) + (2 << 20);
        EXPECT_EQ(early.memory[0].moments, chunks);
      }
    }
  }
}

// No disk is opened, so weights in memory have no old values there.
TEST(Offload, MovesNothingWithoutStates) {
  RunSpec run = run_to(Tier::Disk);
  run.train.dtype = DType::Float32;
  run.mesh.data = 1;
  run.optimizer.kind = OptimizerKind::Sgd;
  run.optimizer.momentum = 0;
  EXPECT_EQ(predict_run(run, node()).offloaded_bytes, 0);
  run.memory.gradients = Tier::Disk;
  run.optimizer.clip_norm = 1;
  RunSpec unclipped = run;
  unclipped.optimizer.clip_norm = 0;
  EXPECT_GT(predict_run(run, node()).offloaded_bytes, predict_run(unclipped, node()).offloaded_bytes);
}

TEST(Offload, FitsWhereTheHostHasRoom) {
  Cluster cluster = node();
  EXPECT_TRUE(predict_run(run_to(Tier::Host), cluster).fits());
  cluster.host.bytes = static_cast<double>(predict_run(run_to(Tier::Host), cluster).offloaded_bytes - 1);
  EXPECT_FALSE(predict_run(run_to(Tier::Host), cluster).fits());
  EXPECT_TRUE(predict_run(run_to(Tier::Disk), cluster).fits());
}

TEST(Offload, NeedsThePlaceInTheClusterFile) {
  Cluster cluster = node();
  cluster.host = {};
  cluster.disk = {};
  const auto said = [&](Tier place) {
    std::string all;
    for (const Problem& problem : prediction_problems(run_to(place), cluster)) all += text(problem);
    return all;
  };
  EXPECT_EQ(said(Tier::Resident), "");
  EXPECT_EQ(
      said(Tier::Host),
      "memory.optimizer = host: needs a [host] in the cluster file, which dgx-a100-80gb has not; nearest valid is "
      "resident");
  EXPECT_NE(said(Tier::Disk).find("needs a [disk]"), std::string::npos);
}

}  // namespace
}  // namespace braid::plan::offload_test
