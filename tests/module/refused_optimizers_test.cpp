// Optimizers whose states cannot be on disk.
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "braid/base/errors.h"
#include "braid/module/layer_call.h"
#include "braid/module/optimizer_on_disk.h"
#include "tests/support/scratch_folder.h"

namespace braid::modules::refused_optimizers_test {
namespace {

using torch::optim::OptimizerParamGroup;

using RefusedOptimizers = ScratchFolder;

TEST_F(RefusedOptimizers, SaysAllThatCannotMove) {
  const auto problems = [&](torch::optim::Optimizer& optimizer, const std::string& folder) -> std::vector<Problem> {
    try {
      OptimizerOnDisk(optimizer, {{folder}});
    } catch (const ConfigError& error) {
      return error.problems();
    }
    return {};
  };
  torch::optim::Adagrad adagrad(Tensors{torch::ones({5}).requires_grad_(true)}, 0.1);
  EXPECT_EQ(problems(adagrad, folder_).size(), 1u);
  const Tensors gaps{torch::randn({4, 4}).narrow(1, 0, 2), torch::randn({3}, at::kDouble)};
  torch::optim::SGD plain(gaps, 0.1);
  const auto all = problems(plain, path("missing"));
  ASSERT_EQ(all.size(), 3u);  // gaps, another type, no folder
  EXPECT_EQ(all[2].key, "folders");
  torch::optim::SGD none(std::vector<OptimizerParamGroup>(), 0.1);
  EXPECT_EQ(problems(none, folder_).size(), 1u);
}

// Its step() would see parts of parameters.
TEST_F(RefusedOptimizers, OfAClassOfTheProgram) {
  struct Clipped : torch::optim::AdamW {
    using AdamW::AdamW;
  };
  Clipped own(Tensors{torch::ones({5}).requires_grad_(true)}, torch::optim::AdamWOptions(0.1));
  EXPECT_THROW(OptimizerOnDisk(own, {{folder_}}), ConfigError);
}

TEST_F(RefusedOptimizers, WithAParameterTwice) {
  const at::Tensor one = torch::randn({5}).requires_grad_(true);
  torch::optim::AdamW twice(Tensors{one, one}, 0.1);
  EXPECT_THROW(OptimizerOnDisk(twice, {{folder_}}), ConfigError);
}

}  // namespace
}  // namespace braid::modules::refused_optimizers_test
