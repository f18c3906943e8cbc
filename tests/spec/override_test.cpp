// Overrides: what they accept, which of several wins, and what is said to wrong ones.
#include "tests/spec/complaint.h"

namespace braid::spec::override_test {
namespace {

RunSpec run(const std::vector<std::string>& words, const std::string& toml = "") {
  return parse_run("data.paths = [\"corpus.txt\"]\n" + toml, "run.toml", words);
}

TEST(Override, ReadsTomlAndBareWords) {
  EXPECT_EQ(run({"train.steps=7"}).train.steps, 7);
  EXPECT_EQ(run({" train.steps = 7 "}).train.steps, 7);
  EXPECT_EQ(run({"optimizer.lr=1"}).optimizer.lr, 1.0);
  EXPECT_EQ(run({"optimizer.lr=3e-4"}).optimizer.lr, 3e-4);
  EXPECT_EQ(run({"train.reduction=reproducible"}).train.reduction, Reduction::Reproducible);
  EXPECT_EQ(run({"train.reduction=\"reproducible\""}).train.reduction, Reduction::Reproducible);
  EXPECT_EQ(run({"train.out=12"}).train.out, "12");
  EXPECT_EQ(run({"train.out=runs/a b=c"}).train.out, "runs/a b=c");
  EXPECT_EQ(run({"train.sample_prompt="}).train.sample_prompt, "");
  EXPECT_EQ(run({"data.paths=[a.txt, b c.txt]"}).data.paths, (Strings{"a.txt", "b c.txt"}));
  EXPECT_EQ(run({"data.paths=[\"a,b.txt\"]"}).data.paths, (Strings{"a,b.txt"}));
  for (const char* word :
       {"pipeline.partition=[2.5, 3.5]", "pipeline.partition=2.5,3.5", "pipeline.partition=\"2.5,3.5\""}) {
    EXPECT_EQ(run({"mesh.pipe=2", word}).pipeline.partition, "2.5,3.5");
  }
}

TEST(Override, TheLastOneWinsAndRepairsTheFile) {
  EXPECT_EQ(run({"train.steps=7", "train.steps=8"}, "[train]\nsteps = 6\n").train.steps, 8);
  // A list is replaced, not joined.
  EXPECT_EQ(run({"data.paths=[b.txt]"}).data.paths, (Strings{"b.txt"}));
  // The range is judged at the end, a type where it is read.
  EXPECT_EQ(run({"train.steps=7"}, "[train]\nsteps = 0\n").train.steps, 7);
}

TEST(Override, Complaints) {
  expect_complaints({
      {"",
       {"train.steps"},
       "override = \"train.steps\": must have the form section.key=value; nearest valid is train.steps=100"},
      {"",
       {"--steps"},
       "override = \"--steps\": must have the form section.key=value; nearest valid is train.steps=100"},
      {"", {"=3"}, "override = \"=3\": must have the form section.key=value"},
      {"", {"steps=3"}, "steps = 3: is not a known key; nearest valid is train.steps"},
      {"", {"trian.steps=3"}, "trian.steps = 3: is not a known key; nearest valid is train.steps"},
      {"", {"model=gpt2"}, "model = gpt2: is not a known key"},
      {"", {"train.steps=many"}, "train.steps = \"many\": must be an integer"},
      {"", {"train.steps="}, "train.steps = \"\": must be an integer"},
      {"", {"train.steps=1.5"}, "train.steps = 1.5: must be an integer; nearest valid is 2"},
      {"", {"train.steps=3\ntrain.batch=4"}, "train.steps = \"3\\ntrain.batch=4\": must be an integer"},
      {"", {"train.resume=\"x"}, "train.resume = \"x: is not a TOML value"},
      {"",
       {"data.paths=corpus.txt"},
       "data.paths = \"corpus.txt\": must be a list of strings; nearest valid is [\"corpus.txt\"]"},
      {"",
       {"pipeline.schedule=1f1bb"},
       "pipeline.schedule = \"1f1bb\": must be " + schedules() + "; nearest valid is \"1f1b\""},
      {"", {"train.reduction="}, "train.reduction = \"\": must be \"fast\" or \"reproducible\""},
      {"", {"train.out=\xff"}, "train.out = \\xff: is not a TOML value"},
      {"",
       {"model.heads=5", "train.dtype=half", "lr=1"},
       "model.heads = 5: must divide model.width (384); nearest valid is 4\n"
       "train.dtype = \"half\": must be \"float32\", \"float64\", \"bfloat16\" or \"float16\"; nearest valid is "
       "\"float16\"\n"
       "lr = 1: is not a known key; nearest valid is optimizer.lr"},
  });
}

}  // namespace
}  // namespace braid::spec::override_test
