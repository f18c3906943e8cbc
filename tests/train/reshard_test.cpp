// A checkpoint of one layout resumes on another: the state is the same bit for bit, the losses are those of a run that
// was never interrupted. Pairs of 25 layouts of 1 to 8 ranks; all of them in a full run.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::reshard_test {
namespace {

constexpr int kSavedSteps = 2;

struct Layout {
  MeshSpec mesh;
  std::string schedule = "1f1b";
  int chunks = 1, zero = 0, zero_group = 0;
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> kLayouts{
      {},
      {{.data = 2}},
      {{.pipe = 2}},
      {{.tensor = 2}},
      {{.data = 2}, "1f1b", 1, 1},
      {{.data = 2}, "1f1b", 1, 2},
      {{.data = 2}, "1f1b", 1, 3},
      {{.pipe = 2}, "zb-v", 2},
      {{.pipe = 2}, "interleaved", 2},
      {{.pipe = 2}, "dualpipe"},
      {{.pipe = 3}, "gpipe"},
      {{.tensor = 3}},
      {{.pipe = 2, .data = 2}, "zb-h1"},
      {{.data = 2, .tensor = 2}, "1f1b", 1, 3},
      {{.pipe = 2, .tensor = 2}},
      {{.data = 4}, "1f1b", 1, 3, 2},
      {{.pipe = 4}},
      {{.pipe = 2, .data = 2}, "interleaved", 2, 1},
      {{.pipe = 3, .tensor = 2}},
      {{.data = 8}, "1f1b", 1, 3},
      {{.pipe = 2, .data = 2, .tensor = 2}, "1f1b", 1, 2},
      {{.pipe = 4, .tensor = 2}},
      {{.pipe = 2, .data = 4}, "1f1b", 1, 3},
      {{.pipe = 8}, "gpipe"},
      {{.pipe = 2, .data = 2, .batch_shares = "3,1"}, "1f1b", 1, 1},
  };
  return kLayouts;
}

RunSpec spec_of(size_t number) {
  const Layout& layout = layouts()[number];
  RunSpec spec = tiny_spec(6, 8);
  spec.mesh = layout.mesh;
  spec.pipeline.schedule = layout.schedule;
  spec.pipeline.chunks = layout.chunks;
  spec.sync.zero = layout.zero;
  spec.sync.zero_group = layout.zero_group;
  return spec;
}

class Reshard : public ScratchFolder {
 protected:
  static const LayoutResult& uninterrupted() {
    static const LayoutResult kResult = train_layout(tiny_spec(6, 8));
    return kResult;
  }
  std::string saved(size_t number) const { return path(cat("saved-", number)); }
  void save(size_t number) const {
    if (std::filesystem::exists(saved(number))) return;
    on_every_rank(spec_of(number), [&](Trainer& trainer) {
      for (int i = 0; i < kSavedSteps; ++i) trainer.step();
      trainer.save(saved(number), "");
    });
  }
  // Every tensor of a checkpoint, whole.
  static std::map<std::string, at::Tensor> state(const std::string& directory) {
    std::vector<ckpt::PlacedTensor> tensors;
    for (const auto& [name, tensor] : ckpt::read_manifest(directory).tensors) {
      tensors.push_back(
          {name, mesh::replicated(tensor.shape), at::empty(tensor.shape, ckpt::scalar_type(tensor.type))});
    }
    ckpt::load_checkpoint(directory, tensors);
    std::map<std::string, at::Tensor> state;
    for (const ckpt::PlacedTensor& tensor : tensors) state[tensor.name] = tensor.local;
    return state;
  }
  void expect_goes_on(size_t from, size_t to) const {
    const std::string again = path("again");
    on_every_rank(spec_of(to), [&](Trainer& trainer) {
      trainer.load(saved(from));
      trainer.save(again, "");
      EXPECT_NEAR(trainer.step().loss, uninterrupted().losses[kSavedSteps], 1e-10);
    });
    EXPECT_TRUE(same_bits(state(again), state(saved(from))));
    std::filesystem::remove_all(again);
  }
};

TEST_F(Reshard, WhatOneLayoutSavesAnyOtherGoesOnWithBitForBit) {
  const size_t count = layouts().size();
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t stride = 1; stride <= count; ++stride) {
    for (size_t from = 0; from < count; ++from) pairs.emplace_back(from, (from + stride * 7) % count);
  }
  if (!full_run()) pairs.resize(count);  // each layout once on either side
  for (const auto& [from, to] : pairs) {
    SCOPED_TRACE(cat("from layout ", from, " to ", to));
    save(from);
    expect_goes_on(from, to);
  }
}

}  // namespace
}  // namespace braid::train::reshard_test
