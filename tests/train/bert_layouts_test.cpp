// The masked objective on every kind of layout: the bits of one rank in reproducible mode.
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/train/layout_run.h"

namespace braid::train::bert_layouts_test {
namespace {

RunSpec bert_spec(SequenceCut sequences = SequenceCut::Packed) {
  RunSpec spec = tiny_spec(4, 8);
  spec.model.family = ModelFamily::Bert;
  spec.model.layers = 4;
  spec.model.context = 12;
  spec.model.dropout = 0.1;
  spec.data.mask_fraction = 0.3;
  spec.data.sequences = sequences;
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  return spec;
}

struct Layout {
  const char* name;
  void (*apply)(RunSpec& spec);
};

const std::vector<Layout> kLayouts{
    {"pipe", [](RunSpec& s) { s.mesh.pipe = 2; }},
    {"a cut inside a layer", [](RunSpec& s) { s.mesh.pipe = 2, s.pipeline.partition = "1.5,2.5"; }},
    {"data", [](RunSpec& s) { s.mesh.data = 4; }},
    {"zero 1", [](RunSpec& s) { s.mesh.data = 2, s.sync.zero = 1; }},
    {"zero 3", [](RunSpec& s) { s.mesh.data = 2, s.sync.zero = 3; }},
    {"zero bubble", [](RunSpec& s) { s.mesh.pipe = 2, s.pipeline.schedule = "zb-h1"; }},
    {"interleaved", [](RunSpec& s) { s.mesh.pipe = 2, s.pipeline.schedule = "interleaved", s.pipeline.chunks = 2; }},
    {"dualpipe", [](RunSpec& s) { s.mesh.pipe = 2, s.pipeline.schedule = "dualpipe"; }},
    {"selective", [](RunSpec& s) { s.memory.recompute = "selective"; }},
    {"full", [](RunSpec& s) { s.memory.recompute = "full"; }},
    {"full and pipe and data", [](RunSpec& s) { s.mesh.pipe = 2, s.mesh.data = 2, s.memory.recompute = "full"; }},
    {"gpipe and zero 2",
     [](RunSpec& s) { s.mesh.pipe = 2, s.mesh.data = 2, s.pipeline.schedule = "gpipe", s.sync.zero = 2; }},
};

void expect_same_bits(const LayoutResult& got, const LayoutResult& want) {
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_EQ(got.grad_norms, want.grad_norms);
  EXPECT_EQ(got.sample_hashes, want.sample_hashes) << "all layouts choose the same tokens";
  EXPECT_TRUE(same_bits(got.first_gradients, want.first_gradients));
  EXPECT_TRUE(same_bits(got.params, want.params));
}

TEST(BertLayouts, TwelveLayoutsHaveTheBitsOfOneRank) {
  const LayoutResult want = train_layout(bert_spec());
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    RunSpec spec = bert_spec();
    layout.apply(spec);
    expect_same_bits(train_layout(spec), want);
  }
}

TEST(BertLayouts, PaddedSequencesToo) {
  const LayoutResult want = train_layout(bert_spec(SequenceCut::Documents));
  for (const Layout& layout : sampled(kLayouts, 4)) {
    SCOPED_TRACE(layout.name);
    RunSpec spec = bert_spec(SequenceCut::Documents);
    layout.apply(spec);
    expect_same_bits(train_layout(spec), want);
  }
}

TEST(BertLayouts, TensorRanksHaveTheBitsOfOneTensorSize) {
  RunSpec spec = bert_spec();
  spec.mesh.tensor = 2;
  const LayoutResult want = train_layout(spec);
  spec.mesh.pipe = 2, spec.mesh.data = 2;
  expect_same_bits(train_layout(spec), want);
}

TEST(BertLayouts, TensorRanksTrainTheSameModel) {
  RunSpec spec = bert_spec();
  spec.train.dtype = DType::Float64;
  spec.train.reduction = Reduction::Fast;
  const LayoutResult want = train_layout(spec);
  for (const int tensor : {2, 4}) {
    spec.mesh.tensor = tensor;
    EXPECT_LT(largest_difference(train_layout(spec).params, want.params), 1e-9) << tensor;
  }
}

TEST(BertLayouts, AnotherSeedChoosesOtherTokens) {
  RunSpec spec = bert_spec();
  const auto hashes = train_layout(spec).sample_hashes;
  spec.data.mask_fraction = 0.31;  // the same number of masks
  EXPECT_EQ(train_layout(spec).sample_hashes, hashes);
  spec.train.seed = 2;
  EXPECT_NE(train_layout(spec).sample_hashes, hashes);
}

}  // namespace
}  // namespace braid::train::bert_layouts_test
