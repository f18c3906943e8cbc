// Trainings with compressed gradients: checkpoints hold the residuals.
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/spec/describe.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::reduction_test {
namespace {

class CompressedRun : public ScratchFolder {};

// A configuration that a checkpoint can hold: every key is valid.
RunSpec compressed_spec(const std::string& compression) {
  RunSpec spec = tiny_spec(6, 8);
  spec.data.paths = {"text"};
  spec.model.vocab = 257;
  spec.model.output_weights = OutputWeights::Tied;
  spec.mesh = {.pipe = 2, .data = 2, .context = 1, .expert = 1, .tensor = 1};
  spec.sync.compression = value_of<CompressionKind>(compression).value();
  spec.sync.compression_rank = 1;
  spec.sync.compression_fraction = 0.05;
  return spec;
}

std::map<std::string, at::Tensor> params_after(const RunSpec& spec, const std::function<void(Trainer&)>& body) {
  std::map<std::string, at::Tensor> params;
  std::mutex lock;
  on_every_rank(spec, [&](Trainer& trainer) {
    body(trainer);
    const std::scoped_lock hold(lock);
    collect(trainer, params, Held::Weights);
  });
  return params;
}

TEST_F(CompressedRun, ASavedRunGoesOnBitForBitWithWhatItOwes) {
  for (const char* compression : {"top-k", "one-bit", "eight-bit", "power-sgd"}) {
    SCOPED_TRACE(compression);
    const RunSpec spec = compressed_spec(compression);
    const std::string folder = path(compression);
    const auto want = params_after(spec, [&](Trainer& trainer) {
      trainer.step();
      trainer.save(folder, spec::to_toml(spec));
      trainer.step();
    });
    EXPECT_TRUE(same_bits(params_after(spec,
                                       [&](Trainer& trainer) {
                                         trainer.load(folder);
                                         EXPECT_TRUE(trainer.take_choices().empty());
                                         trainer.step();
                                       }),
                          want));
  }
}

TEST_F(CompressedRun, ResidualsOfOtherRanksBeginAtZeroIfAllowedAndTheRunSaysSo) {
  const RunSpec spec = compressed_spec("top-k");
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.step();
    trainer.save(path("saved"), spec::to_toml(spec));
  });
  RunSpec other = spec;
  other.mesh.data = 4;
  try {
    on_every_rank(other, [&](Trainer& trainer) { trainer.load(path("saved")); });
    FAIL() << "residuals are dropped silently";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), cat("mesh.data = 4: must be as in ", path("saved"),
                                ", where these ranks have residuals of sync.compression; they begin at zero with "
                                "train.allow_change = [\"sync.compression\"]; nearest valid is 2"));
  }
  other.train.allow_change = {"sync.compression"};
  on_every_rank(other, [&](Trainer& trainer) {
    trainer.load(path("saved"));
    const auto choices = trainer.take_choices();
    ASSERT_EQ(choices.size(), 1u);
    EXPECT_EQ(choices[0],
              cat("the residuals of compression begin at zero: mesh.data was 2 in ", path("saved"), " and is 4"));
    trainer.step();
  });
}

}  // namespace
}  // namespace braid::train::reduction_test
