// Names that other programs have for braid's keys: each is answered with a key, a value or an option that there is.
#include "braid/spec/suggested_key.h"

#include <set>

#include "braid/base/text.h"
#include "braid/model/preset.h"
#include "braid/spec/peer_names.h"
#include "tests/spec/complaint.h"

namespace braid::spec::suggested_key_test {
namespace {

void expect_fits(const std::string& assignment) {
  const auto found = problems_of({"", {assignment}, ""});
  for (const Problem& problem : found) {
    const std::string key = assignment.substr(0, assignment.find('='));
    EXPECT_FALSE(problem.key == key && problem.rule.starts_with("must be"))
        << assignment << ": " << braid::text(problem);
    EXPECT_NE(problem.rule, "is not a known key") << assignment;
  }
}

TEST(SuggestedKey, EveryNameOfAPeerIsAnsweredWithAKeyThatThereIs) {
  std::set<std::string_view> names;
  for (const auto table : {peer_names(), related_peer_names()}) {
    for (const auto& [name, key] : table) {
      EXPECT_TRUE(names.insert(name).second) << name << " stands twice";
      EXPECT_EQ(as_peers_write(name), name);
      EXPECT_EQ(known_as(std::string(name)), key) << name << " is answered with something else";
      const std::string plain(key.substr(0, key.find('=')));
      EXPECT_NE(find_field(plain), nullptr) << name << " -> " << key;
      if (plain != key) expect_fits(std::string(key));
    }
  }
  EXPECT_GE(names.size(), 180u);
}

TEST(SuggestedKey, EveryWordOfAPeerIsAnsweredWithAWordOfTheKey) {
  for (const auto& [key, word, meant] : peer_words()) {
    const Field* const field = find_field(std::string(key));
    ASSERT_NE(field, nullptr) << key;
    Strings words;
    if (const auto* rule = std::get_if<OneOf>(&field->rule)) words = rule->words;
    EXPECT_EQ(std::ranges::count(words, meant), 1) << key << " = " << meant;
    EXPECT_EQ(std::ranges::count(words, word), 0) << key << " = " << word;
    EXPECT_EQ(word_of_peer(key, word), meant);
  }
}

// Families say by which other names they and their presets are known.
TEST(SuggestedKey, EveryOtherNameOfAModelMeansIt) {
  for (const model::Preset& preset : model::presets()) {
    for (const std::string& other : preset.other_names) EXPECT_EQ(word_of_peer("model.preset", other), preset.name);
  }
  EXPECT_EQ(word_of_peer("model.preset", "gpt2-XL"), "gpt2-1.5b");
  EXPECT_EQ(word_of_peer("model.family", "mistral"), "llama");
  EXPECT_EQ(word_of_peer("model.family", "gpt"), "gpt2");
  EXPECT_EQ(word_of_peer("model.family", "t5"), "");
}

// Keys that hold strings and have a list of words know peers' words too.
TEST(SuggestedKey, AnswersWordsOfStrings) {
  for (const auto& [written, meant] : {std::pair("Interleaved1F1B", "interleaved"), {"ZBVZeroBubble", "zb-v"}}) {
    const auto problem = broken_rule(*find_field("pipeline.schedule"), RunSpec{.pipeline = {.schedule = written}});
    ASSERT_TRUE(problem) << written;
    EXPECT_EQ(problem->nearest, cat("\"", meant, "\""));
  }
}

// The suggestions as people get them, from files of torchtitan too.
TEST(SuggestedKey, Complaints) {
  const std::string form = ": must have the form section.key=value; nearest valid is ";
  const std::string unknown = ": is not a known key; nearest valid is ";
  expect_complaints({
      {"", {"mesh.dp=2"}, "mesh.dp = 2" + unknown + "mesh.data"},
      {"", {"optimizer.learning_rate=1e-3"}, "optimizer.learning_rate = 1e-3" + unknown + "optimizer.lr"},
      {"", {"model.hidden_size=64"}, "model.hidden_size = 64" + unknown + "model.width"},
      {"", {"train.fp16=true"}, "train.fp16 = true" + unknown + "train.dtype=float16"},
      {"", {"bf16=true"}, "bf16 = true" + unknown + "train.dtype=bfloat16"},
      {"", {"fp16"}, "override = \"fp16\"" + form + "train.dtype=float16"},
      {"", {"train.steps", "5"}, "override = \"train.steps 5\"" + form + "train.steps=5"},
      {"", {"--micro-batch-size", "2"}, "override = \"--micro-batch-size 2\"" + form + "train.microbatch=2"},
      {"", {"--num-train-epochs", "3"}, "override = \"--num-train-epochs 3\"" + form + "train.steps"},
      {"", {"--dtype", "bf16"}, "override = \"--dtype bf16\"" + form + "train.dtype=bfloat16"},
      {"",
       {"train.dtype=half"},
       "train.dtype = \"half\": must be \"float32\", \"float64\", \"bfloat16\" or \"float16\"; nearest valid is "
       "\"float16\""},
      {"[training]\nlocal_batch_size = 3\nsteps = 7\n[parallelism]\ntensor_parallel_degree = 2\n",
       {},
       "training.local_batch_size = 3" + unknown + "train.microbatch\n" + "training.steps = 7" + unknown +
           "train.steps\n" + "parallelism.tensor_parallel_degree = 2" + unknown + "mesh.tensor"},
      {"[validation]\nfreq = 5\nsteps = 7\n",
       {},
       "validation.freq = 5" + unknown + "train.eval_every\n" + "validation.steps = 7" + unknown +
           "train.eval_sequences"},
  });
}

}  // namespace
}  // namespace braid::spec::suggested_key_test
