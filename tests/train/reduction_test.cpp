// Compressed and node-by-node sums in a whole training: what is saved goes on, nodes keep the bits, bytes are told.
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

TEST_F(CompressedRun, OnOtherRanksWhatWasOwedBeginsAtZeroWhereThatIsAllowedAndTheRunSaysSo) {
  const RunSpec spec = compressed_spec("top-k");
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.step();
    trainer.save(path("saved"), spec::to_toml(spec));
  });
  RunSpec other = spec;
  other.mesh.data = 4;
  try {
    on_every_rank(other, [&](Trainer& trainer) { trainer.load(path("saved")); });
    FAIL() << "what is owed is lost in silence";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), cat("mesh.data = 4: must be as in ", path("saved"),
                                ", where sync.compression carries over what these ranks owe; it begins at zero with "
                                "train.allow_change = [\"sync.compression\"]; nearest valid is 2"));
  }
  other.train.allow_change = {"sync.compression"};
  on_every_rank(other, [&](Trainer& trainer) {
    trainer.load(path("saved"));
    const auto choices = trainer.take_choices();
    ASSERT_EQ(choices.size(), 1u);
    EXPECT_EQ(choices[0],
              cat("what compression carries over begins at zero: mesh.data was 2 in ", path("saved"), " and is 4"));
    trainer.step();
  });
}

TEST_F(CompressedRun, NodesKeepTheBitsOfReproducibleTraining) {
  RunSpec spec = tiny_spec(6, 16);
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  const LayoutResult want = train_layout(spec);
  spec.mesh.data = 4;
  for (const int per_node : {1, 2, 4}) {
    SCOPED_TRACE(per_node);
    spec.mesh.ranks_per_node = per_node;
    const LayoutResult got = train_layout(spec);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_TRUE(same_bits(got.params, want.params));
  }
}

TEST_F(CompressedRun, BytesAcrossNodesAreOneShareOfTheSum) {
  RunSpec spec = tiny_spec(6, 16);
  spec.train.dtype = DType::Float32;
  spec.mesh = {.pipe = 1, .data = 4, .context = 1, .expert = 1, .tensor = 2, .ranks_per_node = 4};
  on_every_rank(spec, [&](Trainer& trainer) {  // two replicas on each of two nodes
    const StepReport report = trainer.step();
    const int64_t bytes = trainer.model().params().flat_grads().numel() * 4;
    EXPECT_EQ(report.sync_bytes_across_nodes, bytes / 2);             // all-reduce of half over 2 nodes
    EXPECT_EQ(report.sync_bytes, bytes / 2 + bytes / 2 + bytes / 2);  // reduce-scatter and all-gather of half inside
  });
}

}  // namespace
}  // namespace braid::train::reduction_test
