// Going on from checkpoints that do not know their data and hold no tokenizer, as the first format's.
#include "braid/train/resumed_state.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/spec/describe.h"
#include "braid/spec/fields.h"
#include "braid/train/generate.h"
#include "braid/train/resume.h"
#include "tests/support/former_checkpoint.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::resumed_state_test {
namespace {

// A checkpoint of one step on tokens made in memory, whose manifest is made one of the first format.
class FirstFormat : public ScratchFolder {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(BRAID_SOURCE_DIR "/tests/tokenize/data/bpe.json", tokenizer_);
    spec_ = tiny_spec(2, 2);
    spec_.model.vocab = 700;
    spec_.train.dtype = DType::Float32;
    spec_.data = {.paths = {"text"}, .tokenizer = tokenizer_};
    std::string config = spec::to_toml(spec_);
    config.insert(config.find("[train]\n") + 8, "eval_batches = 4\n");  // which there was then, as there was
    config.insert(config.find("[pipeline]\n") + 11, "validation = \"before\"\n");
    config.insert(config.find("[sync]\n") + 7, "server_optimizer = \"adamw\"\n");
    on_every_rank(spec_, [&](Trainer& trainer) {
      trainer.step();
      trainer.save(step_, config);
    });
    make_former(step_, 1);
  }
  RunSpec resumed(int steps) const {
    RunSpec spec = spec_;
    spec.train.resume = step_;
    spec.train.steps = steps;
    return spec;
  }

  const std::string tokenizer_ = path("tok.json"), step_ = path("step-1");
  RunSpec spec_;
};

// Anybody may have written the path in a checkpoint.
TEST_F(FirstFormat, SamplesWithATokenizerThatIsNamedAndOpensNoneThatIsNot) {
  GenerateOptions options{.prompt = "a", .num_tokens = 3, .threads = 1};
  try {
    generate(step_, options, nullptr);
    ADD_FAILURE() << "opened the path that the checkpoint names";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(error.problems()[0].key, "data.tokenizer");
    EXPECT_NE(error.problems()[0].rule.find("must be given"), std::string::npos);
  }
  options.tokenizer = tokenizer_;
  EXPECT_FALSE(generate(step_, options, nullptr).empty());
}

TEST_F(FirstFormat, OpensNoFileThatItsConfigurationNames) {
  ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(step_);
  info.config_toml.insert(info.config_toml.find("[model]\n") + 8, cat("config = \"", path("nowhere.json"), "\"\n"));
  const auto repeated = info.config_toml.find("config = \"\"\n");
  if (repeated != std::string::npos) info.config_toml.erase(repeated, 12);
  EXPECT_EQ(saved_spec(info, step_).model.width, spec_.model.width);
}

TEST_F(FirstFormat, GoesOnAndSaysWhatIsNotCompared) {
  const ResumedState run = resumed_state_of(resumed(3));
  EXPECT_EQ(run.tokenizer_place, "");
  EXPECT_EQ(run.choices,
            spec::Strings{cat("the tokenizer at ", tokenizer_, ": ", step_, " was saved without its own")});
  data::Corpus corpus = tiny_corpus();
  corpus.origin.sources = {{"text", 1, 2, 3}};
  run_ranks(1, [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    Trainer trainer(run.spec, corpus, world);
    trainer.load(step_);
    EXPECT_EQ(trainer.take_choices(),
              spec::Strings{cat("the data as they are: ", step_, " does not say what it was trained on")});
    EXPECT_EQ(trainer.step().step, 2);
  });
}

TEST_F(FirstFormat, ComparesTheTokenizersFiles) {
  const ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(step_);
  RunSpec spec = resumed(3);
  const data::CorpusOrigin unknown;
  spec.data.tokenizer = path("same.json");
  std::filesystem::copy_file(tokenizer_, spec.data.tokenizer);
  EXPECT_TRUE(resume_problems({spec, unknown}, info, step_).empty());
  write(spec.data.tokenizer, "another");
  const auto found = resume_problems({spec, unknown}, info, step_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "data.tokenizer");
}

// Data that were prepared again by a version with another kind of digest are read again for the one that is compared.
TEST_F(FirstFormat, ComparesDataByTheDigestsOfTheCheckpoint) {
  const NamedDigest was{7, DigestKind::Xxh64}, is{9, DigestKind::Xxh3};
  ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(step_);
  info.data = {{"a.tokens", 1, 2, was}};
  data::CorpusOrigin origin;
  origin.sources = {{"a.tokens", 1, 2, is}};
  origin.digest_as = [&](size_t, DigestKind kind) { return kind == was.kind ? was : is; };
  EXPECT_TRUE(resume_problems({resumed(3), origin}, info, step_).empty());
  info.data[0].digest.value = 8;
  const auto found = resume_problems({resumed(3), origin}, info, step_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "data.paths");
}

// The checkpoint remembers where the decay was to end, though nothing named it.
TEST_F(FirstFormat, HasAHorizon) {
  const ResumedState longer = resumed_state_of(resumed(10));
  EXPECT_EQ(longer.spec.optimizer.decay_steps, spec_.train.steps);
  RunSpec asked = resumed(10);
  asked.optimizer.decay_steps = 10;
  EXPECT_EQ(resumed_state_of(asked).spec.optimizer.decay_steps, 10);
  EXPECT_EQ(resumed_state_of(resumed(spec_.train.steps)).spec.optimizer.decay_steps, 0);
  EXPECT_EQ(resumed_state_of(spec_).spec, spec_);
}

TEST_F(FirstFormat, GivesAConstantRateNoHorizon) {
  RunSpec constant = resumed(10);
  constant.optimizer.schedule = RateSchedule::Constant;
  EXPECT_EQ(resumed_state_of(constant).spec.optimizer.decay_steps, 0);
}

class ReproducibleSums : public ScratchFolder {
 protected:
  // A checkpoint of one step, whose configuration is without `left_out`.
  RunSpec saved(const std::string& left_out, int tensor_ranks) {
    RunSpec spec = tiny_spec(6, 2);
    spec.model.vocab = 300;
    spec.train.reduction = Reduction::Reproducible;
    spec.train.tensor_parts = 6;
    spec.data = {.paths = {"text"}, .tokenizer = kByteTokenizer};
    spec.mesh.tensor = tensor_ranks;
    std::string config = spec::to_toml(spec);
    if (!left_out.empty()) config.erase(config.find(left_out), left_out.size());
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.step();
      trainer.save(path("step-1"), config);
    });
    spec.train.resume = path("step-1");
    return spec;
  }
  std::vector<std::string> changed_keys(const RunSpec& spec) const {
    std::vector<std::string> keys;
    for (const TrainingChange& change :
         training_changes(spec, saved_spec(ckpt::read_checkpoint_info(path("step-1")), path("step-1")))) {
      keys.push_back(change.key);
    }
    return keys;
  }
};

TEST_F(ReproducibleSums, FromBeforeTheirPartsAreOthers) {
  const RunSpec spec = saved("tensor_parts = 6\n", 3);
  EXPECT_EQ(resumed_state_of(spec).choices,
            spec::Strings{cat("other roundings than before: ", spec.train.resume,
                              " was saved before reproducible sums were the same on every mesh.tensor")});
  EXPECT_TRUE(changed_keys(spec).empty());
}

TEST_F(ReproducibleSums, HaveOneNumberOfParts) {
  RunSpec spec = saved("", 1);
  EXPECT_TRUE(resumed_state_of(spec).choices.empty());
  spec.train.tensor_parts = 4;
  EXPECT_EQ(changed_keys(spec), std::vector<std::string>{"train.tensor_parts"});
  spec.train.reduction = Reduction::Fast;
  EXPECT_TRUE(changed_keys(spec).empty());
}

}  // namespace
}  // namespace braid::train::resumed_state_test
