// A checkpoint holds the state of one optimizer: another one does not go on from it.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/describe.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/served_run.h"

namespace braid::served_resume_test {
namespace {

// `optimizer` "": no servers, and AdamW.
RunSpec spec_of(const std::string& optimizer) {
  RunSpec spec = served_spec({"1f1b", {.data = 2}}, optimizer.empty() ? "" : "bsp");
  if (!optimizer.empty()) spec.sync.server_optimizer = optimizer;
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
  for (const char* same : {"adamw", "adagrad", "sgd"}) EXPECT_EQ(refusal(same, same), "") << same;
  EXPECT_EQ(refusal("adamw", ""), "");
  EXPECT_EQ(refusal("", "adamw"), "");
}

TEST_F(ServedResume, AnotherOptimizerIsRefused) {
  const auto state_of = [&](const std::string& was, const std::string& optimizer) {
    return cat("go on with the optimizer of ", path("of-" + was), ", whose state is that of \"", optimizer, "\"");
  };
  EXPECT_EQ(refusal("adagrad", "adamw"), "sync.server_optimizer = \"adamw\": must " + state_of("adagrad", "adagrad") +
                                             "; nearest valid is \"adagrad\"");
  EXPECT_EQ(refusal("", "sgd"),
            "sync.server_optimizer = \"sgd\": must " + state_of("", "adamw") + "; nearest valid is \"adamw\"");
  EXPECT_EQ(refusal("sgd", ""), "sync.replication = \"all-reduce\": must have servers, and " + state_of("sgd", "sgd") +
                                    "; nearest valid is \"parameter-server\"");
}

}  // namespace
}  // namespace braid::served_resume_test
