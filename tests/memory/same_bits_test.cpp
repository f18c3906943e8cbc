// Losses and gradients have the same bits whatever is computed again.
#include <ATen/Parallel.h>

#include <mutex>

#include "braid/base/text.h"
#include "tests/memory/two_stages.h"

namespace braid {
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

struct SameBits : testing::TestWithParam<std::tuple<const char*, at::ScalarType>> {
  StagesRun run() const {
    StagesRun run{five_blocks(std::get<0>(GetParam()))};
    run.dtype = std::get<1>(GetParam());
    return run;
  }
};
INSTANTIATE_TEST_SUITE_P(Models, SameBits,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values(at::kDouble, at::kFloat, at::kBFloat16, at::kHalf)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + c10::toString(std::get<1>(info.param));
                         });

constexpr const char* kPolicies[] = {"selective", "full",           "every:2",          "every:9",
                                     "full,none", "none,selective", "selective,every:2"};

TEST_P(SameBits, UnderEveryPolicyWheneverWeightGradientsRun) {
  for (const Reduction reduction : {Reduction::Fast, Reduction::Reproducible}) {
    for (const Weights weights : {Weights::AtOnce, Weights::AfterBackward, Weights::AtTheEnd}) {
      StagesRun run = this->run();
      run.reduction = reduction;
      run.weights = weights == Weights::AtOnce ? Weights::AfterBackward : weights;
      const Tensors want = step_of(run);
      run.weights = weights;
      for (const char* policy : kPolicies) {
        run.recompute = policy;
        EXPECT_EQ(num_differences(step_of(run), want), 0)
            << policy << ", weights " << static_cast<int>(weights) << ", reduction " << static_cast<int>(reduction);
      }
    }
  }
}

TEST_P(SameBits, OnTensorRanksByDocumentAheadOfBackwardAndWithoutDropout) {
  const auto expect_same = [](StagesRun run, const char* what) {
    const Tensors want = step_of(run);
    for (const char* policy : kPolicies) {
      run.recompute = policy;
      EXPECT_EQ(num_differences(step_of(run), want), 0) << policy << ", " << what;
    }
  };
  StagesRun tensor = run(), documents = run(), ahead = run(), no_dropout = run();
  tensor.ranks = 2;
  tensor.weights = Weights::AtOnce;
  documents.documents = StagesRun::Documents::Several;
  ahead.recomputes = StagesRun::Recomputes::Ahead;
  no_dropout.model.dropout = 0;
  expect_same(tensor, "two tensor ranks");
  expect_same(documents, "documents");
  expect_same(ahead, "ahead");
  expect_same(no_dropout, "no dropout");
}

TEST(SameBitsCanFail, OtherMasksAreOtherBits) {
  StagesRun run{five_blocks("gpt2")};
  const Tensors want = step_of(run);
  run.model.dropout = 0.31;
  EXPECT_GT(num_differences(step_of(run), want), 0);
}

}  // namespace
}  // namespace braid
