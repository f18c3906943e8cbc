// Shares of a batch against every other way, and what is predicted of replicas that have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "braid/base/errors.h"
#include "braid/plan/balanced_partition.h"
#include "braid/plan/cluster_presets.h"
#include "braid/plan/pipelined_run.h"
#include "braid/plan/predict_run.h"

namespace braid::plan::balanced_shares_test {
namespace {

double last_done(const std::vector<double>& seconds, const std::vector<int>& units) {
  double last = 0;
  for (size_t i = 0; i < units.size(); ++i) last = std::max(last, units[i] * seconds[i]);
  return last;
}

// Returns the best of all ways to split `left` units among those from `who` on, one each at least.
double best_of_all(const std::vector<double>& seconds, std::vector<int> units, int left) {
  if (units.size() + 1 == seconds.size()) {
    units.push_back(left);
    return last_done(seconds, units);
  }
  double best = 1e300;
  const int others = static_cast<int>(seconds.size() - units.size()) - 1;
  units.push_back(0);
  for (int own = 1; own <= left - others; ++own) {
    units.back() = own;
    best = std::min(best, best_of_all(seconds, units, left - own));
  }
  return best;
}

TEST(BalancedUnits, AreDoneAsEarlyAsCanBe) {
  std::mt19937_64 random(3);
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<double> seconds(1 + random() % 4);
    for (double& one : seconds) one = 1 + static_cast<double>(random() % 1000) / 50;
    const int units = static_cast<int>(seconds.size() + random() % 16);
    const std::vector<int> found = balanced_units(seconds, units);
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0), units);
    EXPECT_GE(*std::ranges::min_element(found), 1);
    EXPECT_DOUBLE_EQ(last_done(seconds, found), best_of_all(seconds, {}, units));
  }
  EXPECT_EQ(balanced_units({1, 3}, 1'000'000), (std::vector{750'000, 250'000}));
  EXPECT_THROW(balanced_units({1, 1, 1}, 2), InternalError);
}

TEST(BalancedShares, AreInLowestTermsAndWhatTheScheduleTakes) {
  EXPECT_EQ(balanced_shares({1, 3}, "1f1b", {.ranks = 2, .microbatches = 16}), "3,1");
  EXPECT_EQ(balanced_shares({2, 2}, "1f1b", {.ranks = 2, .microbatches = 16}), "equal");
  EXPECT_EQ(balanced_shares({1, 2}, "1f1b", {.ranks = 2, .microbatches = 16}), "11,5");
  EXPECT_EQ(balanced_shares({1, 2}, "interleaved", {.ranks = 2, .microbatches = 16}), "3,1");  // even ones alone
  EXPECT_EQ(balanced_shares({1, 3}, "dualpipe", {.ranks = 4, .microbatches = 16}), "equal");
}

// A node of eight A100s and one of eight of a third of their speed.
Cluster fast_and_slow() {
  Cluster cluster = cluster_preset("dgx-a100-80gb").value();
  cluster.devices.front().nodes = 1;
  DeviceGroup slow = cluster.devices.front();
  for (PeakRate& peak : slow.peaks) peak.flops /= 3;
  slow.memory_bytes_per_second /= 3;
  cluster.devices.push_back(slow);
  return cluster;
}

RunSpec run_of(MeshSpec mesh) {
  RunSpec run;
  run.model = {.layers = 16, .heads = 16, .width = 2048, .context = 1024, .vocab = 32000};
  run.train.batch = 64;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  run.mesh = std::move(mesh);
  return run;
}

TEST(UnlikeReplicas, TheStepIsThatOfTheSlowest) {
  const Cluster cluster = fast_and_slow();
  RunSpec run = run_of({.data = 2, .tensor = 8});
  const Prediction equal = predict_run(run, cluster);
  RunSpec alone = run;
  alone.mesh.data = 1;
  alone.train.batch = 16;
  const Prediction quarter_on_fast = predict_run(alone, cluster);
  EXPECT_NEAR(equal.seconds.compute, 6 * quarter_on_fast.seconds.compute, 1e-9);  // twice as much at a third
  run.mesh.batch_shares = "3,1";
  const Prediction shared = predict_run(run, cluster);
  EXPECT_NEAR(shared.seconds.compute, 3 * quarter_on_fast.seconds.compute, 1e-9);
  EXPECT_LE(least_step_seconds(run, cluster, FormulaSet::Braid), shared.step_seconds());
  EXPECT_NEAR(shared.tokens_per_second_per_device * shared.step_seconds() * 16, 64 * 1024, 1e-6);
  run.mesh.batch_shares = "1,3";
  EXPECT_NEAR(predict_run(run, cluster).seconds.compute, 9 * quarter_on_fast.seconds.compute, 1e-9);
}

TEST(UnlikeReplicas, HaveSharesInProportion) {
  RunSpec run = run_of({.pipe = 8, .data = 2});
  const Cluster cluster = fast_and_slow();
  for (const auto detail : {PipelineDetail::Estimated, PipelineDetail::Played}) {
    EXPECT_EQ(PipelinedRun(run, cluster, {FormulaSet::Braid, detail}).balanced_shares(), "3,1");
    // Megatron-LM's data ranks are neighbours: each stage has its copies on devices of one kind, which no shares mend.
    EXPECT_EQ(PipelinedRun(run, cluster, {FormulaSet::Megatron, detail}).balanced_shares(), "equal");
  }
  const Cluster alike = cluster_preset("dgx-a100-80gb").value();
  EXPECT_EQ(PipelinedRun(run, alike, {}).balanced_shares(), "equal");
}

// Each rank of pipe holds what the replica with most microbatches under way does.
TEST(UnlikeReplicas, MemoryIsOfTheFuller) {
  const Cluster cluster = fast_and_slow();
  RunSpec run = run_of({.pipe = 8, .data = 2});
  run.train.batch = 16;
  run.pipeline.schedule = "gpipe";
  const int64_t equal = predict_run(run, cluster).fullest().activations;
  run.mesh.batch_shares = "3,1";
  EXPECT_NEAR(static_cast<double>(predict_run(run, cluster).fullest().activations), 1.5 * static_cast<double>(equal),
              0.1 * static_cast<double>(equal));
}

// Three fourths and one fourth of the work on one core take as long as two halves.
TEST(UnlikeReplicas, ThatShareCoresLeaveThemToEachOther) {
  Cluster host = cluster_preset("dgx-a100-80gb").value();
  host.devices = {
      {.per_node = 1, .nodes = 1, .memory_bytes = 1e12, .memory_bytes_per_second = 1e10, .shared_cores = true}};
  host.devices[0].peaks = {{DType::Float32, 1e11}};
  RunSpec run = run_of({.data = 2});
  run.train.dtype = DType::Float32;
  const double equal = predict_run(run, host).seconds.compute;
  run.mesh.batch_shares = "3,1";
  EXPECT_NEAR(predict_run(run, host).seconds.compute / equal, 1, 1e-9);
}

}  // namespace
}  // namespace braid::plan::balanced_shares_test
