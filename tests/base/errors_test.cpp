// Wording and contents of the errors. What is done with them is the command line's tests' business.
#include "braid/base/errors.h"

#include <gtest/gtest.h>

namespace braid::errors_test {
namespace {

TEST(Problem, ReadsAsOneSentence) {
  EXPECT_EQ(text(Problem{"model.heads", "6", "must be divisible by mesh.tensor (4)", "8"}),
            "model.heads = 6: must be divisible by mesh.tensor (4); nearest valid is 8");
  EXPECT_EQ(text(Problem{"model.heads", "6", "must be even", ""}), "model.heads = 6: must be even");
  EXPECT_EQ(text(Problem{"run.toml:3:7", "", "is not TOML", ""}), "run.toml:3:7: is not TOML");
  EXPECT_EQ(text(Problem{"", "--fast", "is not an option", ""}), "--fast: is not an option");
  EXPECT_EQ(text(Problem{"", "", "nothing to train on", ""}), "nothing to train on");
}

TEST(ConfigError, CarriesEveryProblem) {
  const std::vector<Problem> found = {{"a", "1", "must be 2", "2"}, {"b", "", "is missing", ""}};
  const ConfigError error(found);
  EXPECT_STREQ(error.what(), "a = 1: must be 2; nearest valid is 2\nb: is missing");
  EXPECT_EQ(error.problems(), found);
}

TEST(CommError, NamesTheFirstRankThatFailed) {
  const CommError error({"all_reduce #17 on tensor", 3, 0.25, "loss is not finite"});
  EXPECT_STREQ(error.what(), "all_reduce #17 on tensor failed after 0.250 s: rank 3: loss is not finite");
  EXPECT_EQ(error.failure().rank, 3);
}

TEST(IoError, NamesPathAndByte) {
  EXPECT_STREQ(IoError("weights", 12, "header is cut off").what(), "weights: at byte 12: header is cut off");
  EXPECT_STREQ(IoError("weights", 0, "empty").what(), "weights: at byte 0: empty");
  const IoError error("weights", -1, "no such file");
  EXPECT_STREQ(error.what(), "weights: no such file");
  EXPECT_EQ(error.path(), "weights");
  EXPECT_EQ(error.offset(), -1);
}

// All kinds: a name, a value or a message of somebody else's stands in each.
TEST(Errors, SayWhatOthersWroteWithoutLettingItSteerTheTerminal) {
  const std::string evil("a\x1b]0;title\a\0b", 13), shown = "a\\x1b]0;title\\x07\\x00b";
  const ConfigError config({{evil, evil, "must not be " + evil, evil}});
  EXPECT_EQ(config.what(), shown + " = " + shown + ": must not be " + shown + "; nearest valid is " + shown);
  EXPECT_EQ(config.problems()[0].value, evil);
  const IoError io(evil, -1, "holds " + evil);
  EXPECT_EQ(io.what(), shown + ": holds " + shown);
  EXPECT_EQ(io.path(), evil);
  EXPECT_NE(std::string(CommError({evil, 0, 0, evil}).what()).find("rank 0: " + shown), std::string::npos);
  EXPECT_EQ(RunError(evil).what(), shown);
  EXPECT_EQ(InternalError(evil).what(), shown);
}

TEST(Errors, AreAsLongAsSomebodyReads) {
  const std::string cell(1'000'000, 'F');
  EXPECT_LT(std::string(ConfigError({{cell, cell, cell, cell}}).what()).size(), 30'000u);
  EXPECT_LT(std::string(IoError(cell, 0, cell).what()).size(), 30'000u);
}

TEST(Errors, MayShowAPictureOfSeveralLines) {
  EXPECT_STREQ(ConfigError({{"schedule", "", "cannot run:\nrank 0  >F0<\n", ""}}).what(),
               "schedule: cannot run:\nrank 0  >F0<\n");
}

TEST(Check, ThrowsWithFileAndLine) {
  EXPECT_NO_THROW(check(true, "fine"));
  const int line = __LINE__ + 2;
  try {
    check(false, "two and two make four");
    FAIL() << "nothing thrown";
  } catch (const InternalError& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.ends_with("errors_test.cpp:" + std::to_string(line) + ": two and two make four")) << what;
  }
}

// The command line tells the kinds apart by type.
TEST(Errors, AreOfDifferentKinds) {
  EXPECT_FALSE((std::is_base_of_v<std::runtime_error, InternalError>));
  EXPECT_FALSE((std::is_base_of_v<ConfigError, CommError>) || (std::is_base_of_v<CommError, IoError>));
  EXPECT_TRUE((std::is_base_of_v<std::runtime_error, ConfigError>));
}

}  // namespace
}  // namespace braid::errors_test
