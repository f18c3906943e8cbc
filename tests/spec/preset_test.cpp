// Models by name: what wins over what, what is refused, and that a resolved run says everything itself.
#include "braid/model/preset.h"

#include <set>

#include "braid/model/shape.h"
#include "braid/spec/describe.h"
#include "tests/spec/complaint.h"

namespace braid::spec::preset_test {
namespace {

ModelSpec model_of(const std::string& toml, const std::vector<std::string>& words = {}) {
  return parse_run("data.paths = [\"corpus.txt\"]\n" + toml, "run.toml", words).model;
}

TEST(Preset, EveryOneIsALegalRunUnderItsOwnName) {
  std::set<std::string> names;
  for (const auto& preset : model::presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_FALSE(preset.source.empty()) << preset.name;
    EXPECT_EQ(model_of("[model]\npreset = \"" + preset.name + "\""), preset.model);
    EXPECT_TRUE(preset.model.preset.empty() && preset.model.config.empty()) << preset.name;
  }
}

TEST(Preset, KeysOfTheFileAndOverridesWinInThisOrder) {
  const ModelSpec model = model_of("[model]\nlayers = 3\ncontext = 128\npreset = \"gpt2-124m\"", {"model.layers=2"});
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.context, 128);
  EXPECT_EQ(model.width, 768);
  EXPECT_EQ(model.vocab, 50257);
}

TEST(Preset, AnOverrideReplacesThePresetUnderTheFilesKeys) {
  const ModelSpec model = model_of("[model]\npreset = \"gpt2-124m\"\ncontext = 128", {"model.preset=llama-1b"});
  EXPECT_EQ(model.family, ModelFamily::Llama);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.context, 128);
  EXPECT_EQ(model_of("[model]\npreset = \"gpt2-124m\"", {"model.preset="}), ModelSpec());
}

// Were the name kept, the file of a finished run would name a model that an override changed.
TEST(Preset, ResolvedRunsNameNoPresetAndReadBack) {
  for (const auto& preset : model::presets()) {
    const RunSpec run = parse_run("data.paths = [\"corpus.txt\"]", "run.toml", {"model.preset=" + preset.name});
    EXPECT_EQ(run.model.preset, "");
    EXPECT_EQ(parse_run(to_toml(run), "printed", {}), run);
  }
}

TEST(Preset, MistakesAreReportedOnce) {
  std::string all;
  for (const auto& preset : model::presets()) all += (all.empty() ? "\"" : ", \"") + preset.name + "\"";
  expect_complaints({
      {"[model]\npreset = \"gpt-124m\"",
       {},
       "model.preset = \"gpt-124m\": must be empty or one of " + all + "; nearest valid is \"gpt2-124m\""},
      {"", {"model.preset=xyz"}, "model.preset = \"xyz\": must be empty or one of " + all},
      {"", {"model.preset=gpt2"}, "model.preset = \"gpt2\": must be empty or one of " + all + "..."},
      {"[model]\npreset = \"gpt2-124m\"\nconfig = \"config.json\"",
       {},
       "model.config = \"config.json\": must be empty when model.preset is given; nearest valid is \"\""},
      {"[model]\npreset = \"gpt2-124m\"\nheads = 7",
       {},
       "model.heads = 7: must divide model.width (768); nearest valid is 6"},
  });
}

// A model that could not be had leaves its sizes unknown: only what was given is judged, by itself.
TEST(Preset, AnUnknownOneSilencesTheRulesAboutItsSizes) {
  const auto found = problems_of({"[model]\npreset = \"lama-1b\"\nheads = 7\nlayers = 0", {"mesh.tensor=7"}, ""});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].key, "model.preset");
  EXPECT_EQ(found[0].nearest, "\"llama-1b\"");
  EXPECT_EQ(found[1].key, "model.layers");
}

TEST(Preset, ASpecThatWasNeverResolvedIsRefused) {
  RunSpec run;
  run.data.paths = {"corpus.txt"};
  EXPECT_TRUE(problems(run).empty());
  run.model.preset = "gpt2-124m";
  ASSERT_EQ(problems(run).size(), 1u);
  EXPECT_EQ(problems(run)[0].key, "model.preset");
}

TEST(Family, KeysThatMeanNothingToItAreRefused) {
  expect_complaints({
      {"",
       {"model.rope_scaling=llama3"},
       "model.rope_scaling = \"llama3\": must be \"none\" when model.family is \"gpt2\""},
      {"",
       {"model.kv_heads=3"},
       "model.kv_heads = 3: must be 0 or model.heads when model.family is \"gpt2\"; nearest valid is 0"},
      {"",
       {"model.preset=llama-1b", "model.rope_high_frequency=1"},
       "model.rope_high_frequency = 1: must be more than model.rope_low_frequency (1)"},
  });
}

TEST(InitialWeights, NameTheModelWhereNothingElseDoes) {
  const std::string folder = std::string(BRAID_SOURCE_DIR) + "/tests/weights/data/qwen3";
  const std::string toml = "data.tokenizer = \"words\"\ntrain.init = \"" + folder + "\"\n";
  const ModelSpec model = model_of(toml, {"model.context=8"});
  EXPECT_TRUE(model.qk_norm);
  EXPECT_EQ(model.head_width, 10);
  EXPECT_EQ(model.vocab, 61);
  EXPECT_EQ(model.context, 8);
  EXPECT_EQ(model_of(toml, {"model.preset=gpt2-tiny"}).family, ModelFamily::Gpt2);
  RunSpec run = parse_run("data.paths = [\"corpus.txt\"]\n" + toml, "run.toml", {});
  run.train.init = "/nowhere/at/all";
  EXPECT_EQ(parse_run(to_toml(run), "printed", {}), run) << "every figure is there, so nobody looks for the weights";
}

TEST(InitialWeights, OfACheckpointAreAskedFor) {
  ParseOptions options;
  options.model_of_checkpoint = [](const TrainSpec& train, std::vector<Problem>& problems) {
    ModelSpec model;
    model.layers = 3;
    if (train.init != "run") problems.push_back({"train.init", train.init, "must be run", "run"});
    return model;
  };
  const auto parsed = [&](const std::string& init) {
    return parse_run("data.paths = [\"corpus.txt\"]", "run.toml", {"train.init=" + init}, options);
  };
  EXPECT_EQ(parsed("run").model.layers, 3);
  EXPECT_THROW(parsed("rum"), ConfigError);
}

TEST(Family, HeadsOfGpt2AreAsTheyAre) {
  for (const std::string word :
       {"model.head_width=64", "model.qkv_bias=true", "model.qk_norm=true", "model.window=9"}) {
    EXPECT_THROW(model_of("", {word}), ConfigError) << word;
    EXPECT_NO_THROW(model_of("", {word, "model.family=llama"})) << word;
  }
  EXPECT_THROW(model_of("", {"model.head_width=63", "model.family=llama"}), ConfigError);
}

TEST(Family, FeedForwardWidthFollowsTheFamily) {
  ModelSpec model;
  model.width = 100;
  EXPECT_EQ(model::ffn_width(model), 400);
  model.family = ModelFamily::Llama;
  EXPECT_EQ(model::ffn_width(model), 320);
  model.ffn = 7;
  EXPECT_EQ(model::ffn_width(model), 7);
}

}  // namespace
}  // namespace braid::spec::preset_test
