// Reasons, word by word, of predictions that are made up.
#include "braid/plan/reasons.h"

#include <gtest/gtest.h>

namespace braid::plan::reasons_test {
namespace {

// Two stages need more than there is; sharding states takes longer.
class MadeUp final : public Predictor {
 public:
  Prediction predict(const RunSpec& spec) override {
    constexpr int64_t kGibi = int64_t{1} << 30;
    Prediction prediction;
    prediction.memory_bytes = kGibi;
    prediction.seconds = {.compute = 1, .data = spec.sync.zero > 0 ? 0.3 : 0.25};
    prediction.memory = {{.parameters = kGibi / 4}};
    if (spec.mesh.pipe == 2) prediction.memory.push_back({.parameters = kGibi / 2, .moments = kGibi});
    return prediction;
  }
  std::string balanced_partition(const RunSpec&) override { return "even"; }
  std::string balanced_shares(const RunSpec&) override { return kEqualShares; }
  double least_seconds(const RunSpec&) override { return 0; }
  int64_t least_bytes(const RunSpec&) override { return 0; }
};

TEST(Reasons, SayWhatNeighboursLackAndWhatTheStepWaitsFor) {
  SearchRequest request;
  request.space.num_devices = 2;
  request.space.run.model = {.layers = 2, .heads = 1, .width = 64, .context = 64, .vocab = 257};
  request.space.run.train.batch = 2;
  request.space.run.train.microbatch = 1;
  request.space.pinned = {"train.microbatch", "pipeline.schedule", "memory.recompute"};
  request.memory_bytes = int64_t{1} << 30;
  request.top = 1;
  MadeUp predictor;
  Plan plan = search(request, predictor);
  add_reasons(request, plan.layouts, predictor);
  ASSERT_EQ(plan.layouts.size(), 1u);
  EXPECT_EQ(plan.layouts[0].why,
            "pipe 1 rather than 2, which would need 1.5 GiB on rank 1 of pipe, most of it moments; zero 0 rather than "
            "1, which would take 4.0 % longer, most of it data. 20.0 % of the step goes to data");
}

}  // namespace
}  // namespace braid::plan::reasons_test
