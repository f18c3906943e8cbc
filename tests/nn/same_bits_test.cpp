// Losses and gradients have the same bits whatever is computed again.
#include <ATen/Parallel.h>

#include <mutex>

#include "braid/base/text.h"
#include "tests/nn/two_stages.h"

namespace braid::nn::same_bits_test {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

Tensors step_of(const StagesRun& run) {
  Tensors all;
  std::mutex lock;
  run_ranks(run.ranks, [&](Communicator& tensor) {
    at::get_num_threads();
    at::set_num_threads(1);
    const Tensors mine = TwoStages(run, tensor).step();
    const std::scoped_lock hold(lock);
    for (const auto& [name, value] : mine) all[cat(name, " on rank ", tensor.rank())] = value;
  });
  return all;
}

int num_differences(const Tensors& got, const Tensors& want) {
  int differences = got.size() == want.size() ? 0 : 1;
  for (const auto& [name, tensor] : want) {
    if (!got.contains(name) || !got.at(name).equal(tensor)) ++differences;
  }
  return differences;
}

struct SameBits : testing::TestWithParam<std::tuple<ModelFamily, at::ScalarType>> {
  StagesRun run() const {
    StagesRun run{five_blocks(std::get<0>(GetParam()))};
    run.dtype = std::get<1>(GetParam());
    return run;
  }
};
INSTANTIATE_TEST_SUITE_P(Models, SameBits,
                         testing::Combine(testing::Values(ModelFamily::Gpt2, ModelFamily::Llama),
                                          testing::Values(at::kDouble, at::kFloat, at::kBFloat16, at::kHalf)),
                         [](const auto& info) {
                           return cat(std::get<0>(info.param), c10::toString(std::get<1>(info.param)));
                         });

// Expects the bits of `run` without recompute, whose weight gradients run after each backward if not at the end.
void expect_same(StagesRun run, const std::vector<const char*>& policies, const std::string& what) {
  const Weights weights = run.weights;
  if (weights == Weights::AtOnce) run.weights = Weights::AfterBackward;
  const Tensors want = step_of(run);
  run.weights = weights;
  for (const char* policy : policies) {
    run.recompute = policy;
    EXPECT_EQ(num_differences(step_of(run), want), 0) << policy << ", " << what;
  }
}

TEST_P(SameBits, UnderEveryPolicyWheneverWeightGradientsRun) {
  const std::vector<const char*> policies = {"selective", "full", "every:2", "full,none", "selective,every:9"};
  StagesRun at_once = run(), at_the_end = run(), reproducible = run();
  at_once.weights = Weights::AtOnce;
  at_the_end.weights = Weights::AtTheEnd;
  reproducible.reduction = Reduction::Reproducible;
  expect_same(at_once, policies, "at once");
  expect_same(at_the_end, policies, "at the end");
  expect_same(reproducible, policies, "reproducible");
}

TEST_P(SameBits, OnTensorRanksByDocumentAheadOfBackwardAndWithoutDropout) {
  const std::vector<const char*> policies = {"none,selective", "full", "every:2"};
  StagesRun tensor = run(), documents = run(), ahead = run(), no_dropout = run();
  tensor.ranks = 2;
  tensor.weights = Weights::AtOnce;
  documents.documents = StagesRun::Documents::Several;
  ahead.recomputes = StagesRun::Recomputes::Ahead;
  no_dropout.model.dropout = 0;
  expect_same(tensor, policies, "two tensor ranks");
  expect_same(documents, policies, "documents");
  expect_same(ahead, policies, "ahead");
  expect_same(no_dropout, policies, "no dropout");
}

TEST(SameBitsCanFail, OtherMasksAreOtherBits) {
  StagesRun run{five_blocks(ModelFamily::Gpt2)};
  const Tensors want = step_of(run);
  run.model.dropout = 0.31;
  EXPECT_GT(num_differences(step_of(run), want), 0);
}

}  // namespace
}  // namespace braid::nn::same_bits_test
