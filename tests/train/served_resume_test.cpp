// A checkpoint holds the state of one optimizer: another one does not go on from it.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/describe.h"
#include "braid/train/resume.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/served_run.h"

namespace braid::served_resume_test {
namespace {

// "served sgd", or "sgd" without servers.
RunSpec spec_of(const std::string& optimizer) {
  const bool served = optimizer.starts_with("served ");
  RunSpec spec = served_spec({"1f1b", {.data = 2}}, served ? "bsp" : "");
  spec.optimizer.kind = optimizer.substr(served ? 7 : 0);
  spec.data.paths = {"text"};  // for the configuration that the checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
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
      trainer.save(folder, to_toml(before));
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

// As configurations were before servers took optimizer.kind.
TEST_F(ServedResume, KnowsTheFormerKeyOfTheServersOptimizer) {
  RunSpec spec = spec_of("served adagrad");
  CheckpointInfo info{.config_toml = to_toml(spec)};
  const auto replace = [&](const std::string& from, const std::string& to) {
    info.config_toml.replace(info.config_toml.find(from), from.size(), to);
  };
  replace("kind = \"adagrad\"\n", "");
  replace("[sync]\n", "[sync]\nserver_optimizer = \"adagrad\"\n");
  EXPECT_EQ(saved_spec(info, "somewhere"), spec);
}

}  // namespace
}  // namespace braid::served_resume_test
