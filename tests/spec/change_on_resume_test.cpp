// Keys that may change on resume, one by one, and those that train.allow_change may name.
#include "braid/spec/change_on_resume.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/spec/parse.h"

namespace braid::spec::change_on_resume_test {
namespace {

using enum ChangeOnResume;

TEST(ChangeOnResume, IsOfTheSectionUnlessTheKeySaysOtherwise) {
  const auto change = [](const char* key) { return change_on_resume(*find_field(key)); };
  for (const char* key :
       {"model.width", "model.rope_base", "train.seed", "train.batch", "data.weights", "optimizer.kind"})
    EXPECT_EQ(change(key), Never) << key;
  for (const char* key : {"optimizer.lr", "optimizer.groups", "model.dropout", "data.attention", "sync.period"})
    EXPECT_EQ(change(key), ByLeave) << key;
  for (const char* key : {"mesh.data", "train.microbatch", "train.out", "memory.recompute", "sync.zero", "run.ranks",
                          "model.preset", "checkpoint.keep", "data.paths"})
    EXPECT_EQ(change(key), Free) << key;
}

std::string refusal(const std::string& run) {
  try {
    parse_run("[data]\npaths = [\"text\"]\n" + run, "run.toml", {});
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(ChangeOnResume, OnlyKeysThatMayChangeByLeaveAreNamed) {
  EXPECT_EQ(refusal("[train]\nallow_change = [\"optimizer.lr\", \"model.dropout\"]\n"), "");
  EXPECT_EQ(refusal("[train]\nallow_change = [\"optimizer.lr\", \"optimiser.eps\"]\n"),
            "run.toml:4: train.allow_change = [\"optimizer.lr\", \"optimiser.eps\"]: must name keys that change the "
            "training and that a checkpoint can resume with; \"optimiser.eps\" is none, \"optimizer.eps\" is");
  for (const char* key : {"train.batch", "mesh.data", ""})
    EXPECT_NE(refusal(std::string("[train]\nallow_change = [\"") + key + "\"]\n"), "") << key;
}

TEST(ChangeOnResume, KeepingTheBestNeedsSomethingToRemoveAndALossToJudgeBy) {
  EXPECT_EQ(refusal("[checkpoint]\nkeep = 2\nkeep_best = 1\n[train]\neval_every = 5\n"), "");
  EXPECT_EQ(refusal("[checkpoint]\nkeep_best = 1\n[train]\neval_every = 5\n"),
            "run.toml:4: checkpoint.keep_best = 1: must be 0 when checkpoint.keep is 0: all stay; nearest valid is 0");
  EXPECT_EQ(refusal("[checkpoint]\nkeep = 2\nkeep_best = 1\n"),
            "run.toml:5: checkpoint.keep_best = 1: must be 0 when train.eval_every is 0: no loss says which is best; "
            "nearest valid is 0");
}

}  // namespace
}  // namespace braid::spec::change_on_resume_test
