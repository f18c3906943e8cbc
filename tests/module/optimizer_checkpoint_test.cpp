// Checkpoints of one optimizer and another that loads them: of its kind, and with the states that its next step needs.
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "tests/module/saved_models.h"

namespace braid::modules::optimizer_checkpoint_test {
namespace {

using namespace saved_models;

template <class Optimizer>
MakeOptimizer make_plain() {
  return [](const Tensors& parameters) { return std::make_unique<Optimizer>(parameters, 0.01); };
}

class OptimizerCheckpoints : public ScratchFolder {
 protected:
  void save(const MakeOptimizer& make) {
    const Batch rows = batch(0);
    const auto body = [&](const Trained& rank) {
      rank.step(rows);
      rank.model.save(path("saved"), rank.optimizer);
    };
    on({nullptr}, nets({nullptr}, 1), body, make);
  }
  // Returns the problems of a step after loading; nothing else has changed then.
  std::vector<Problem> refused(const Ranks& ranks, const MakeOptimizer& make) {
    const Batch rows = batch(1);
    std::vector<Problem> problems;
    const auto body = [&](const Trained& rank) {
      rank.model.export_weights(path("before"));
      try {
        rank.model.load(path("saved"), rank.optimizer);
        rank.step(rows);
        return;
      } catch (const ConfigError& error) {
        if (rank.world.rank() == 0) problems = error.problems();
      }
      EXPECT_TRUE(rank.optimizer.state().empty());
      rank.model.export_weights(path("after"));
      EXPECT_EQ(content(path("before")), content(path("after")));
    };
    on(ranks, nets(ranks, 2), body, make);
    return problems;
  }
};

// SGD without momentum has no states that would tell, and those of Adam and AdamW have the same names.
TEST_F(OptimizerCheckpoints, AreOfTheirKindAlone) {
  const std::vector<std::pair<std::string, MakeOptimizer>> kinds{{"adamw", make_plain<torch::optim::AdamW>()},
                                                                 {"adam", make_plain<torch::optim::Adam>()},
                                                                 {"sgd", make_plain<torch::optim::SGD>()}};
  for (const auto& [saved, make] : kinds) {
    save(make);
    for (const auto& [kind, other] : kinds) {
      const auto problems = refused({nullptr}, other);
      ASSERT_EQ(problems.size(), kind == saved ? 0u : 1u) << saved << " into " << kind;
      if (kind == saved) continue;
      EXPECT_EQ(problems[0].value, kind);
      EXPECT_EQ(problems[0].rule, cat("must be ", saved, ", with which the checkpoint was made"));
    }
  }
}

// Those saved before checkpoints said so: by their states, which the optimizer must know.
TEST_F(OptimizerCheckpoints, WithoutAKindAreTakenByTheirStates) {
  const auto momentum = [](const Tensors& parameters) {
    return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
  };
  const auto save_former = [&](const MakeOptimizer& make) {
    save(make);
    ckpt::Manifest manifest = ckpt::read_manifest(path("saved"));
    manifest.info.optimizer.clear();
    write(path("saved/manifest.json"), ckpt::manifest_text(manifest));
  };
  const auto states = [&](const Ranks& ranks, const MakeOptimizer& make) {
    std::set<std::string> rules;
    for (const Problem& problem : refused(ranks, make)) rules.insert(problem.rule);
    return rules;
  };
  const std::string rule = "must know the states that the checkpoint has, ";
  save_former(adamw);
  for (const Ranks& ranks : {Ranks{"1f1b", 2}, Ranks{nullptr, 1, 2, 2}})
    EXPECT_EQ(states(ranks, momentum),
              (std::set{rule + "exp_avg", rule + "exp_avg_sq", rule + "max_exp_avg_sq", rule + "step"}));
  EXPECT_TRUE(refused({"1f1b", 2}, adamw).empty());
  EXPECT_TRUE(refused({"1f1b", 2}, make_plain<torch::optim::Adam>()).empty());
  save_former(momentum);
  EXPECT_EQ(states({"1f1b", 2}, adamw), std::set{rule + "momentum_buffer"});
}

// AMSGrad's next step reads what was largest; without it that is left as it was saved.
TEST_F(OptimizerCheckpoints, HaveWhatAmsgradReads) {
  save(make_plain<torch::optim::AdamW>());
  for (const Ranks& ranks : {Ranks{"1f1b", 2}, Ranks{nullptr, 1, 2, 2}}) {
    const auto problems = refused(ranks, adamw);
    const auto is_missing = [](const Problem& problem) { return problem.key == "max_exp_avg_sq/fc.weight"; };
    EXPECT_EQ(std::ranges::count_if(problems, is_missing), 1) << ranks;
    EXPECT_EQ(problems.size(), 9u) << "of each parameter that has states";
  }
  save(adamw);
  EXPECT_TRUE(refused({"1f1b", 2}, make_plain<torch::optim::AdamW>()).empty());
}

}  // namespace
}  // namespace braid::modules::optimizer_checkpoint_test
