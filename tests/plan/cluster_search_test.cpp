// Searches of drawn runs on drawn clusters against an oracle that predicts every layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "braid/base/text.h"
#include "braid/plan/cluster.h"
#include "braid/plan/cluster_file.h"
#include "braid/plan/cluster_predictor.h"
#include "braid/plan/reasons.h"
#include "braid/plan/search.h"
#include "braid/spec/partition.h"
#include "tests/plan/exhaustive_search.h"
#include "tests/support/sampled.h"

namespace braid::plan::cluster_search_test {
namespace {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int among(std::initializer_list<int> values) { return values.begin()[random_() % values.size()]; }
  double between(double least, double most) { return std::uniform_real_distribution<double>(least, most)(random_); }

 private:
  std::mt19937_64 random_;
};

struct Case {
  Cluster cluster;
  SearchRequest request;
};

Case drawn_case(uint64_t seed) {
  Draw draw(seed);
  Case drawn;
  DeviceGroup group;
  group.per_node = draw.among({1, 2, 4});
  group.nodes = draw.among({1, 2});
  group.memory_bytes = draw.between(0.02, 0.4) * kGib;
  group.memory_bytes_per_second = draw.between(50, 2000) * kGiga;
  group.peaks = {{DType::Float32, draw.between(1, 100) * kTera}};
  group.shares = {{DType::Float32, 1e6, draw.between(0.05, 0.3)}, {DType::Float32, 1e9, draw.between(0.3, 0.9)}};
  group.shared_cores = draw.among({0, 0, 1}) == 1;
  if (group.shared_cores) group.skew = 0.3;
  std::vector<DeviceGroup> groups{group};
  if (draw.among({0, 1}) == 1) {  // of another kind, on as many nodes
    DeviceGroup& other = groups.emplace_back(group);
    other.memory_bytes *= draw.between(0.5, 2);
    other.memory_bytes_per_second *= draw.between(0.3, 1);
    other.peaks[0].flops *= draw.between(0.3, 1);
  }
  drawn.cluster = {"drawn", groups, {draw.between(5, 300) * kGiga, 3e-6}, {draw.between(0.1, 25) * kGiga, 1e-5},
                   {},      {}};
  RunSpec& run = drawn.request.space.run;
  run.model.layers = draw.among({2, 4, 6, 12});
  run.model.heads = draw.among({2, 4, 6, 12});
  run.model.width = 64 * run.model.heads;
  run.model.context = draw.among({64, 256, 2048});
  run.model.vocab = draw.among({257, 8000});
  run.train.batch = draw.among({4, 8, 16, 24});
  run.data.paths = {"text"};
  drawn.request.space.num_devices = drawn.cluster.num_devices();
  drawn.request.space.devices_per_node = group.per_node;
  drawn.request.space.num_kinds = static_cast<int>(groups.size());
  drawn.request.space.on_cpus = group.shared_cores;
  run.mesh.context = draw.among({1, 1, 2});
  drawn.request.memory_bytes = static_cast<int64_t>(drawn.cluster.with_least_memory().usable_bytes());
  return drawn;
}

// A node of four fast devices and one of four that have a third of their rate.
Case fast_and_slow() {
  Case both;
  DeviceGroup fast = load_cluster("dgx-a100-80gb", "").devices[0];
  fast.per_node = 4;
  fast.nodes = 1;
  DeviceGroup slow = fast;
  for (PeakRate& peak : slow.peaks) peak.flops /= 3;
  slow.memory_bytes_per_second /= 3;
  both.cluster = {"fast and slow", {fast, slow}, {300 * kGiga, 3e-6}, {25 * kGiga, 8e-6}, {}, {}};
  both.request = {{.num_devices = 8, .devices_per_node = 4, .num_kinds = 2},
                  static_cast<int64_t>(both.cluster.with_least_memory().usable_bytes())};
  RunSpec& run = both.request.space.run;
  run.model = {.layers = 24, .heads = 16, .width = 2048, .context = 1024, .vocab = 32000};
  run.train.batch = 128;
  run.train.dtype = DType::BFloat16;
  run.data.paths = {"text"};
  return both;
}

std::vector<std::string> found(const Plan& plan) {
  std::vector<std::string> all;
  for (const PlannedLayout& layout : plan.layouts) {
    all.push_back(joined(layout.overrides, " ") + " " + exact(layout.prediction.step_seconds()));
  }
  return all;
}

// Counts, and sees to it that bounds are bounds, and that what predictions share changes none of them.
class Watched final : public Predictor {
 public:
  explicit Watched(const Cluster& cluster, PredictOptions options = {FormulaSet::Braid, PipelineDetail::Estimated})
      : cluster_(cluster), predictor_(cluster, options) {}

  Prediction predict(const RunSpec& spec) override {
    Prediction prediction = predictor_.predict(spec);
    if (num_predictions++ % 8 == 0) {
      EXPECT_EQ(prediction, predict_run(spec, cluster_, predictor_.options()));
    }
    EXPECT_LE(least_seconds(spec), prediction.step_seconds() * (1 + 1e-12));
    EXPECT_LE(least_bytes(spec), prediction.fullest().total());
    EXPECT_LE(prediction.bound_step_seconds, prediction.step_seconds() * (1 + 1e-12));
    return prediction;
  }
  std::string balanced_partition(const RunSpec& spec) override { return predictor_.balanced_partition(spec); }
  std::string balanced_shares(const RunSpec& spec) override { return predictor_.balanced_shares(spec); }
  double least_seconds(const RunSpec& spec) override { return predictor_.least_seconds(spec); }
  int64_t least_bytes(const RunSpec& spec) override { return predictor_.least_bytes(spec); }

  int64_t num_predictions = 0;

 private:
  const Cluster& cluster_;
  ClusterPredictor predictor_;
};

TEST(ClusterSearch, FindsWhatPredictingEveryLayoutFinds) {
  int64_t predicted = 0, all = 0;
  int with_some = 0;
  const int count = full_run() ? 200 : 28;
  for (int seed = 0; seed < count; ++seed) {
    const Case drawn = drawn_case(static_cast<uint64_t>(seed));
    Watched predictor(drawn.cluster), oracle(drawn.cluster);
    const Plan plan = search(drawn.request, predictor), wanted = exhaustive_search(drawn.request, oracle);
    ASSERT_EQ(found(plan), found(wanted)) << seed;
    with_some += wanted.layouts.empty() ? 0 : 1;
    predicted += predictor.num_predictions;
    all += oracle.num_predictions;
  }
  EXPECT_GT(with_some, count / 2);
  EXPECT_LT(with_some, count);
  EXPECT_LT(predicted, 3 * all / 4);
}

// Whatever arithmetic is followed, and however pipelines are counted.
TEST(ClusterSearch, BoundsHold) {
  for (const PredictOptions& options : {PredictOptions{FormulaSet::Megatron, PipelineDetail::Estimated},
                                        PredictOptions{FormulaSet::Megatron, PipelineDetail::Played},
                                        PredictOptions{FormulaSet::Braid, PipelineDetail::Played}}) {
    int64_t predicted = 0;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const Case drawn = drawn_case(seed);
      Watched watched(drawn.cluster, options);
      exhaustive_search(drawn.request, watched);
      predicted += watched.num_predictions;
    }
    EXPECT_GT(predicted, 1000);
  }
}

// Shares that are pinned stay, and meshes with another number of data ranks are out.
TEST(ClusterSearch, KeepsSharesThatArePinned) {
  Case both = fast_and_slow();
  both.request.space.run.mesh.batch_shares = "2,1,1,1";
  both.request.space.run.train.batch = 120;
  both.request.space.pinned = {"mesh.batch_shares"};
  both.request.top = 20;
  Watched predictor(both.cluster), oracle(both.cluster);
  const Plan plan = search(both.request, predictor), wanted = exhaustive_search(both.request, oracle);
  EXPECT_EQ(found(plan), found(wanted));
  ASSERT_EQ(plan.layouts.size(), 20u);
  for (const PlannedLayout& layout : plan.layouts) {
    EXPECT_EQ(layout.spec.mesh.data, 4);
    EXPECT_EQ(layout.spec.mesh.batch_shares, "2,1,1,1");
  }
}

// Two stages on a node of fast devices and one of slow ones, of half their rate.
TEST(ClusterSearch, ProposesStagesInProportionToTheirDevices) {
  Cluster unlike = with_nodes(load_cluster("dgx-a100-80gb", ""), 1, "");
  DeviceGroup& slow = unlike.devices.emplace_back(unlike.devices[0]);
  for (PeakRate& peak : slow.peaks) peak.flops /= 2;
  slow.memory_bytes_per_second /= 2;
  SearchRequest request{.space = {.num_devices = 16,
                                  .devices_per_node = 8,
                                  .pinned = {"mesh.tensor", "train.microbatch", "pipeline.schedule"}},
                        .memory_bytes = static_cast<int64_t>(unlike.with_least_memory().usable_bytes())};
  RunSpec& run = request.space.run;
  run.model = {.layers = 30, .heads = 32, .width = 4096, .context = 2048, .vocab = 32000};
  run.train.batch = 64;
  run.train.dtype = DType::BFloat16;
  run.train.microbatch = 2;
  run.mesh.tensor = 8;
  ClusterPredictor predictor(unlike, {});
  Plan plan = search(request, predictor);
  add_reasons(request, plan.layouts, predictor);
  const PlannedLayout& best = plan.layouts.at(0);
  EXPECT_EQ(best.spec.mesh.pipe, 2);
  EXPECT_EQ(best.layout.cut, CutChoice::Balanced);
  EXPECT_GT(spec::partition_list(best.spec.pipeline.partition)->front(), 18);
  EXPECT_NE(best.why.find("cut balanced rather than even, which would take "), std::string::npos) << best.why;
}

TEST(ClusterSearch, ProposesPartsOfTheBatchInProportionToDevices) {
  Case both = fast_and_slow();
  both.request.space.pinned = {"pipeline.partition"};  // stages in proportion are the other remedy
  ClusterPredictor predictor(both.cluster, {});
  Plan plan = search(both.request, predictor);
  add_reasons(both.request, plan.layouts, predictor);
  const PlannedLayout& best = plan.layouts.at(0);
  EXPECT_EQ(best.layout.shares, BatchSplitChoice::Balanced);
  EXPECT_NE(best.why.find("batch shares in proportion to speed rather than equal, which would take "),
            std::string::npos)
      << best.why;
  const auto is_shares = [](const std::string& word) { return word.starts_with("mesh.batch_shares="); };
  EXPECT_TRUE(std::ranges::any_of(best.overrides, is_shares));

  both.request.space.pinned.insert("mesh.batch_shares");
  const Plan equal = search(both.request, predictor);
  EXPECT_GT(equal.layouts.at(0).prediction.step_seconds(), 1.2 * best.prediction.step_seconds());
}

}  // namespace
}  // namespace braid::plan::cluster_search_test
