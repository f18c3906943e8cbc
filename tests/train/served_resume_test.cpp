// A checkpoint holds the state of one optimizer: another one does not go on from it.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/describe.h"
#include "braid/train/resume.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/served_run.h"

namespace braid::train::served_resume_test {
namespace {

// "served sgd", or "sgd" without servers.
RunSpec spec_of(const std::string& optimizer) {
  const bool served = optimizer.starts_with("served ");
  RunSpec spec = served_spec({"1f1b", {.data = 2}}, served ? "bsp" : "");
  spec.optimizer.kind = value_of<OptimizerKind>(optimizer.substr(served ? 7 : 0)).value();
  spec.data.paths = {"text"};  // for the configuration that the checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
  spec.train.allow_change = {"sync.replication"};
  return spec;
}

class ServedResume : public ScratchFolder {
 protected:
  // "": it goes on.
  std::string refusal(const std::string& was, const std::string& is) {
    const RunSpec before = spec_of(was);
    const std::string folder = path(cat("of-", was));
    on_every_rank(before, [&](Trainer& trainer) {
      trainer.step();
      trainer.save(folder, spec::to_toml(before));
    });
    try {
      on_every_rank(spec_of(is), [&](Trainer& trainer) {
        trainer.load(folder);
        trainer.step();
      });
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
};

TEST_F(ServedResume, GoesOnWithTheSameOptimizerWhoeverMakesItsSteps) {
  for (const char* same : {"adamw", "adagrad", "sgd"}) {
    EXPECT_EQ(refusal(cat("served ", same), cat("served ", same)), "") << same;
  }
  EXPECT_EQ(refusal("served lion", "lion"), "");
  EXPECT_EQ(refusal("adamw", "served adamw"), "");
}

TEST_F(ServedResume, AnotherOptimizerIsRefused) {
  const auto message = [&](const char* is, const std::string& was, const char* nearest) {
    return cat("optimizer.kind = \"", is, "\": must be the optimizer of ", path("of-" + was), "; nearest valid is \"",
               nearest, "\"");
  };
  EXPECT_EQ(refusal("served adagrad", "served adamw"), message("adamw", "served adagrad", "adagrad"));
  EXPECT_EQ(refusal("adamw", "served sgd"), message("sgd", "adamw", "adamw"));
  EXPECT_EQ(refusal("muon", "adamw"), message("adamw", "muon", "muon"));
}

// As configurations were before servers took optimizer.kind: their key said something where there were servers only.
TEST_F(ServedResume, KnowsTheFormerKeyOfTheServersOptimizer) {
  const auto read = [](const RunSpec& spec, const std::string& former) {
    ckpt::CheckpointInfo info{.config_toml = spec::to_toml(spec)};
    const std::string section = "[sync]\n";
    info.config_toml.insert(info.config_toml.find(section) + section.size(), "server_optimizer = \"" + former + "\"\n");
    return saved_spec(info, "somewhere");
  };
  const RunSpec served = spec_of("served adamw"), alone = spec_of("adamw");
  EXPECT_EQ(read(served, "adamw"), served);
  EXPECT_EQ(read(alone, "sgd"), alone);
  for (const auto& [word, kind] : {std::pair("sgd", OptimizerKind::Sgd), {"adagrad", OptimizerKind::Adagrad}}) {
    RunSpec want = served;
    want.optimizer.kind = kind;
    want.optimizer.momentum = 0;
    want.optimizer.weight_decay = 0;
    EXPECT_EQ(read(served, word), want);
  }
}

}  // namespace
}  // namespace braid::train::served_resume_test
