// Frozen parameters on every layout: the bits of one rank in reproducible mode, the same to 1e-10 where tensor ranks
// split sums, and no frozen byte that moves.
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/train/frozen_runs.h"

namespace braid::train::frozen_layouts_test {
namespace {

struct Layout {
  MeshSpec mesh;
  std::string schedule = "1f1b", recompute = "none";
  int zero = 0, chunks = 0;
};

std::string text_of(const Layout& of) {
  return cat("pipe ", of.mesh.pipe, ", data ", of.mesh.data, ", tensor ", of.mesh.tensor, ", ", of.schedule, ", ",
             of.recompute, ", zero ", of.zero);
}

std::vector<Layout> layouts() {
  return {{{.pipe = 4}},
          {{.data = 4}},
          {{.pipe = 2, .data = 2}, "1f1b", "full"},
          {{.pipe = 4}, "zb-h1"},
          {{.pipe = 2}, "zb-v", "selective"},
          {{.pipe = 2}, "interleaved", "none", 0, 2},
          {{.pipe = 2, .data = 2}, "dualpipe"},
          {{}, "1f1b", "every:3"},
          {{.data = 2}, "1f1b", "every:2", 1},
          {{.data = 2}, "1f1b", "none", 3},
          {{.pipe = 2, .data = 2}, "zb-h1", "full", 3},
          {{.pipe = 2, .data = 2}, "1f1b", "selective", 1}};
}

RunSpec spec_of(const FrozenPattern& pattern) {
  RunSpec spec = frozen_run(pattern);
  spec.train.reduction = Reduction::Reproducible;
  return spec;
}

RunSpec on(RunSpec spec, const Layout& layout) {
  spec.mesh = layout.mesh;
  spec.pipeline.schedule = layout.schedule;
  spec.pipeline.chunks = layout.chunks;
  spec.memory.recompute = layout.recompute;
  spec.sync.zero = layout.zero;
  return spec;
}

void expect_only_trained_ones_move(const RunSpec& spec, const std::map<std::string, at::Tensor>& before,
                                   const LayoutResult& after) {
  for (const auto& [name, weight] : before) {
    EXPECT_EQ(weight.equal(after.params.at(name)), spec::is_frozen(spec.optimizer, name)) << name;
    EXPECT_NE(after.first_gradients.contains(name), spec::is_frozen(spec.optimizer, name)) << name;
  }
}

TEST(FrozenLayouts, GiveTheBitsOfOneRank) {
  size_t number = 0;
  for (const FrozenPattern& pattern : frozen_patterns()) {
    for (const DType type : {DType::Float32, DType::BFloat16}) {
      SCOPED_TRACE(cat(pattern.name, ' ', type));
      RunSpec spec = spec_of(pattern);
      spec.train.dtype = type;
      if (type == DType::BFloat16 && !full_run() && number % 3 != 0) continue;
      const auto before = initial_weights(spec);
      const LayoutResult want = train_layout(spec);
      expect_only_trained_ones_move(spec, before, want);
      const std::vector<Layout> all = layouts();
      for (size_t i = 0; i < all.size(); ++i) {
        if (!full_run() && i % 6 != number % 6) continue;
        SCOPED_TRACE(text_of(all[i]));
        const LayoutResult got = train_layout(on(spec, all[i]));
        EXPECT_EQ(got.losses, want.losses);
        EXPECT_EQ(got.grad_norms, want.grad_norms);
        EXPECT_TRUE(same_bits(got.first_gradients, want.first_gradients));
        EXPECT_TRUE(same_bits(got.params, want.params));
      }
      ++number;
    }
  }
}

TEST(FrozenLayouts, OfTensorRanksAreTheSerialOne) {
  for (const FrozenPattern& pattern : sampled(frozen_patterns(), 3)) {
    SCOPED_TRACE(pattern.name);
    const RunSpec spec = spec_of(pattern);
    const LayoutResult want = train_layout(spec);
    for (const Layout& layout : {Layout{{.tensor = 3}}, Layout{{.pipe = 2, .tensor = 3}, "zb-h1"},
                                 Layout{{.data = 2, .tensor = 3}, "1f1b", "selective", 3},
                                 Layout{{.pipe = 2, .tensor = 3, .sequence_parallel = true}, "zb-h1"},
                                 Layout{{.tensor = 3, .sequence_parallel = true}, "1f1b", "full"}}) {
      SCOPED_TRACE(text_of(layout));
      expect_near(train_layout(on(spec, layout)), want, rounding_of(DType::Float64));
    }
  }
}

void expect_the_same_training(const RunSpec& spec, const LayoutResult& want) {
  const LayoutResult got = train_layout(spec);
  for (size_t i = 0; i < want.losses.size(); ++i) EXPECT_NEAR(got.losses.at(i), want.losses[i], 1e-10);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
}

TEST(FrozenLayouts, OfParameterServersAndOneMicrobatchInAnAsynchronousPipelineAreTheSerialOne) {
  for (const FrozenPattern& pattern : sampled(frozen_patterns(), 5)) {
    SCOPED_TRACE(pattern.name);
    RunSpec spec = frozen_run(pattern);
    spec.optimizer.clip_norm = 0;
    RunSpec served = spec;
    served.mesh.data = served.mesh.pipe = 2;
    served.sync.replication = ReplicationKind::ParameterServer;
    served.sync.servers = 2;
    expect_the_same_training(served, train_layout(spec));
    spec.train.batch = 1;
    expect_the_same_training(on(spec, {{.pipe = 2}, "pipedream"}), train_layout(spec));
  }
}

}  // namespace
}  // namespace braid::train::frozen_layouts_test
