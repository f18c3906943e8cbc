// Weights that a run begins with: the same on every mesh, whatever shares them out; and what contradicts them.
#include "braid/train/initial_weights.h"

#include <gtest/gtest.h>

#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/spec/describe.h"
#include "braid/train/resume.h"
#include "braid/weights/from_hf.h"
#include "braid/weights/hf_directory.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::initial_weights_test {
namespace {

std::string folder_of(const std::string& family) {
  return std::string(BRAID_SOURCE_DIR) + "/tests/weights/data/" + family;
}

std::map<std::string, at::Tensor> whole_weights(const std::string& folder, at::ScalarType type) {
  const weights::HfDirectory source(folder);
  std::map<std::string, at::Tensor> all;
  for (const weights::HfTensor& each : weights::hf_tensors(source.model())) {
    if (each.first_row > 0) continue;
    all[each.whole] = at::zeros(each.whole_shape, type);
    source.read({each.whole, mesh::replicated(each.whole_shape), all[each.whole]});
  }
  return all;
}

RunSpec run_of(const std::string& family) {
  RunSpec spec = tiny_spec(4, 8);
  spec.model = weights::HfDirectory(folder_of(family)).model();
  spec.model.context = 6;
  spec.model.vocab_multiple = 1;
  if (family == "gpt2") spec.model.context = 96;
  spec.train.init = folder_of(family);
  return spec;
}

std::map<std::string, at::Tensor> beginning(const RunSpec& spec, Held what) {
  std::map<std::string, at::Tensor> weights;
  std::mutex lock;
  on_every_rank(spec, [&](Trainer& trainer) {
    EXPECT_EQ(trainer.num_steps(), 0);
    const std::scoped_lock hold(lock);
    collect(trainer, weights, what);
  });
  return weights;
}

TEST(InitialWeights, AreTheDirectorysOnEveryMesh) {
  for (const char* family : {"gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma2"}) {
    const auto want = whole_weights(folder_of(family), at::kDouble);
    RunSpec spec = run_of(family);
    EXPECT_TRUE(initial_weights_problems(spec).empty()) << family;
    EXPECT_TRUE(same_bits(beginning(spec, Held::Weights), want)) << family;
    spec.mesh = {.pipe = 2, .data = 1, .context = 1, .expert = 1, .tensor = 2};
    EXPECT_TRUE(same_bits(beginning(spec, Held::Weights), want)) << family << " on 2 x 2 ranks";
  }
}

TEST(InitialWeights, AreThoseWhateverIsSharedOut) {
  RunSpec spec = run_of("qwen3");
  spec.mesh.data = 2;
  const auto want = whole_weights(folder_of("qwen3"), at::kDouble);
  for (const int zero : {1, 2, 3}) {
    spec.sync.zero = zero;
    EXPECT_TRUE(same_bits(beginning(spec, Held::Weights), want)) << "sync.zero = " << zero;
  }
  spec.sync.zero = 1;
  spec.train.dtype = DType::BFloat16;
  EXPECT_TRUE(same_bits(beginning(spec, Held::Weights), whole_weights(folder_of("qwen3"), at::kBFloat16)));
  EXPECT_TRUE(same_bits(beginning(spec, Held::Masters), whole_weights(folder_of("qwen3"), at::kFloat)));
}

// The loss of a mesh is that of one rank, and replicas of every kind learn from there.
TEST(InitialWeights, TrainOnTheSameOnEveryMesh) {
  for (const char* family : {"mistral", "qwen2", "qwen3"}) {
    RunSpec spec = run_of(family);
    const LayoutResult want = train_layout(spec);
    spec.mesh = {.pipe = 2, .data = 1, .context = 1, .expert = 1, .tensor = 2};
    spec.memory.recompute = "selective,full";
    spec.data.attention = AttentionMask::Causal;
    const LayoutResult got = train_layout(spec);
    for (size_t step = 0; step < want.losses.size(); ++step)
      EXPECT_NEAR(got.losses[step], want.losses[step], 1e-9) << family;
    EXPECT_LT(largest_difference(got.params, want.params), 1e-8) << family;
  }
}

TEST(InitialWeights, AreWhatServersAndLocalUpdatesBeginWith) {
  RunSpec spec = run_of("qwen2");
  spec.mesh.data = 2;
  spec.train.steps = 1;
  const auto want = train_layout(spec);
  for (const ReplicationKind kind : {ReplicationKind::ParameterServer, ReplicationKind::DiLoCo}) {
    spec.sync.replication = kind;
    spec.optimizer.clip_norm = 0;
    EXPECT_TRUE(same_bits(beginning(spec, Held::Weights), whole_weights(folder_of("qwen2"), at::kDouble)));
  }
}

class InitialCheckpoint : public ScratchFolder {};

TEST_F(InitialCheckpoint, GivesWhatItWasMadeOf) {
  PosixFileSystem files;
  weights::checkpoint_from_hf({folder_of("llama"), path("checkpoint")}, files);
  RunSpec spec = run_of("llama");
  spec.train.init = path("checkpoint");
  EXPECT_TRUE(initial_weights_problems(spec).empty());
  spec.mesh = {.pipe = 2, .data = 1, .context = 1, .expert = 1, .tensor = 2};
  EXPECT_TRUE(same_bits(beginning(spec, Held::Weights), whole_weights(folder_of("llama"), at::kDouble)));
  std::vector<Problem> problems;
  EXPECT_EQ(model_of_initial_checkpoint(path("checkpoint"), problems),
            weights::HfDirectory(folder_of("llama")).model());
  EXPECT_TRUE(problems.empty());
  model_of_initial_checkpoint(path("nowhere"), problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "train.init");
}

// A checkpoint is read though the weights that its run began with are gone, by a braid with more keys too.
TEST(InitialWeights, ArePastOnceARunIsSaved) {
  RunSpec spec = run_of("qwen2");
  spec.train.init = "/nowhere";
  spec.data.paths = {"text"};
  spec.data.tokenizer = "words";
  ckpt::CheckpointInfo info;
  info.config_toml = spec::to_toml(spec);
  info.config_toml.replace(info.config_toml.find("window = 0\n"), 11, "");
  spec.train.init.clear();
  EXPECT_EQ(saved_spec(info, "checkpoint"), spec);
}

TEST(InitialWeights, EveryKeyThatContradictsThemIsNamed) {
  RunSpec spec = run_of("qwen2");
  spec.model.layers = 3;
  spec.model.qkv_bias = false;
  spec.model.rope_base = 10;
  spec.model.ffn = 0;
  spec.model.dropout = 0.1;
  spec.model.head_width = 8;  // as it is
  std::vector<std::string> keys;
  for (const Problem& problem : initial_weights_problems(spec)) keys.push_back(problem.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"model.layers", "model.qkv_bias", "model.ffn", "model.rope_base"}));
  RunSpec learned = run_of("gpt2");
  learned.model.context = 40;
  ASSERT_EQ(initial_weights_problems(learned).size(), 1u);
  EXPECT_EQ(text(initial_weights_problems(learned)[0]), cat("model.context = 40: must be as in ", folder_of("gpt2"),
                                                            ", whose weights train.init takes; nearest valid is 96"));
  spec.train.init = "/nowhere";
  EXPECT_THROW(initial_weights_problems(spec), ConfigError);
}

}  // namespace
}  // namespace braid::train::initial_weights_test
