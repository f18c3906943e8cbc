// Where a problem is written: the file and the line, so that nobody has to look for it.
#include <sys/stat.h>

#include <thread>

#include "braid/spec/toml_document.h"
#include "tests/spec/complaint.h"
#include "tests/support/scratch_folder.h"

namespace braid::spec::place_test {
namespace {

const char* const kText = R"([data]
paths = ["corpus.txt"]
[modle]
layers = 3
[model]
head = 4
width = 3.5
heads = 7

[train]
steps = 0
batch = 8
)";

std::string said(const std::vector<std::string>& words) {
  try {
    parse_run(kText, "run.toml", words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Place, EveryProblemOfTheFileHasItsLine) {
  EXPECT_EQ(said({}),
            "run.toml:3: [modle]: is not a known section; nearest valid is [model]\n"
            "run.toml:6: model.head = 4: is not a known key; nearest valid is model.heads\n"
            "run.toml:7: model.width = 3.5: must be an integer; nearest valid is 4\n"
            "run.toml:11: train.steps = 0: must be at least 1; nearest valid is 1");
}

TEST(Place, RulesBetweenKeysToo) {
  const std::string all = said({"model.width=384", "train.steps=1"});
  EXPECT_NE(all.find("run.toml:8: model.heads = 7: must divide model.width (384)"), std::string::npos) << all;
}

TEST(Place, AnOverrideStandsOnNoLine) {
  const std::string all = said({"train.steps=-1", "train.microbatch=0"});
  EXPECT_NE(all.find("\ntrain.steps = -1: must be"), std::string::npos) << all;
  EXPECT_NE(all.find("\ntrain.microbatch = 0: must be"), std::string::npos) << all;
}

class NamedFile : public ScratchFolder {
 protected:
  static std::string problem(const std::string& path) {
    try {
      read_run(path, {});
    } catch (const ConfigError& error) {
      return error.problems().at(0).rule;
    }
    return "accepted";
  }
};

TEST_F(NamedFile, IsReadWhenItEndsSomewhere) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(problem("/dev/zero"), "/dev/zero: is a device, not a regular file");
  std::thread writer([&] { std::ofstream(path("pipe")) << "[train]\nsteps = 1.5\n"; });
  EXPECT_EQ(problem(path("pipe")).substr(0, 7), "must be");
  writer.join();
  EXPECT_EQ(problem(folder_), folder_ + ": is a folder, not a regular file");
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_EQ(problem(path("loop")), path("loop") + ": cannot open: Too many levels of symbolic links");
}

TEST(Place, AKeyOfTooManyPartsIsRefusedBeforeItIsRead) {
  std::string deep = "a";
  for (int i = 0; i < 20'000; ++i) deep += ".a";
  const TomlDocument document = toml_document("b = 1\n" + deep + " = 1\n", "run.toml");
  ASSERT_EQ(document.problems.size(), 1u);
  EXPECT_EQ(document.problems[0].key, "run.toml:2");
}

}  // namespace
}  // namespace braid::spec::place_test
