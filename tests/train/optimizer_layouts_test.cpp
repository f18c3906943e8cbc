// Every optimizer trains the serial model on every layout, and goes on from its checkpoints with the same bits.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/spec/describe.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::optimizer_layouts_test {
namespace {

constexpr const char* kKinds[] = {"adamw", "sgd", "adagrad", "lion", "muon"};

struct Layout {
  MeshSpec mesh;
  int zero = 0;
};

// Llama has no biases: of a key's bias the gradient is zero but for rounding, and Lion takes its sign.
RunSpec spec_of(const std::string& kind, const Layout& layout) {
  RunSpec spec = tiny_spec(2, 8);
  spec.model.family = ModelFamily::Llama;
  spec.model.layers = 2;
  spec.mesh = layout.mesh;
  spec.sync.zero = layout.zero;
  spec.optimizer.kind = value_of<OptimizerKind>(kind).value();
  spec.data.paths = {"text"};  // for the configuration that a checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
  return spec;
}

// One or two by default, all of them under BRAID_FULL.
std::vector<Layout> layouts_of(const std::string& kind) {
  if (std::getenv("BRAID_FULL")) {
    return {{{.data = 2}},
            {{.data = 2}, 1},
            {{.data = 2}, 2},
            {{.data = 2}, 3},
            {{.tensor = 2}},
            {{.pipe = 2}},
            {{.pipe = 2, .data = 2, .tensor = 2}, 1},
            {{.data = 4, .tensor = 2}, 3}};
  }
  if (kind == "muon") return {{{.data = 2, .tensor = 2}, 3}, {{.pipe = 2, .data = 2}, 1}};
  return {{{.pipe = 2, .data = 2, .tensor = 2}, 2}};
}

TEST(OptimizerLayouts, TrainTheSerialModel) {
  for (const char* kind : kKinds) {
    const LayoutResult want = train_layout(spec_of(kind, {}));
    for (const Layout& layout : layouts_of(kind)) {
      SCOPED_TRACE(testing::Message() << kind << " pipe " << layout.mesh.pipe << " data " << layout.mesh.data
                                      << " tensor " << layout.mesh.tensor << " zero " << layout.zero);
      const LayoutResult got = train_layout(spec_of(kind, layout));
      for (size_t i = 0; i < want.losses.size(); ++i) EXPECT_NEAR(got.losses[i], want.losses[i], 1e-10);
      EXPECT_LT(largest_difference(got.params, want.params), 1e-9);
    }
  }
}

// Where bits are promised: reproducible sums, one tensor rank.
TEST(OptimizerLayouts, MuonHasTheSameBitsOnDataAndPipelineLayouts) {
  const auto reproducible = [](const Layout& layout) {
    RunSpec spec = spec_of("muon", layout);
    spec.train.reduction = Reduction::Reproducible;
    return train_layout(spec);
  };
  const LayoutResult want = reproducible({});
  for (const Layout& layout : {Layout{{.data = 2}, 2}, Layout{{.pipe = 2, .data = 2}, 0}}) {
    EXPECT_TRUE(same_bits(reproducible(layout).params, want.params)) << "zero " << layout.zero;
  }
}

class OptimizerResume : public ScratchFolder {
 protected:
  std::map<std::string, at::Tensor> trained(const RunSpec& spec, const std::string& from, const std::string& to) {
    std::map<std::string, at::Tensor> params;
    std::mutex lock;
    on_every_rank(spec, [&](Trainer& trainer) {
      if (!from.empty()) trainer.load(from);
      while (trainer.num_steps() < 2) trainer.step();
      if (!to.empty()) trainer.save(to, spec::to_toml(spec));
      trainer.step();
      const std::scoped_lock hold(lock);
      collect(trainer, params, Held::Masters);
    });
    return params;
  }
};

TEST_F(OptimizerResume, GoesOnWithTheSameBits) {
  for (const char* kind : kKinds) {
    const RunSpec spec = spec_of(kind, {{.data = 2, .tensor = 2}, 1});
    const auto want = trained(spec, "", path(kind));
    EXPECT_TRUE(same_bits(trained(spec, path(kind), ""), want)) << kind;
    const auto alone = trained(spec_of(kind, {}), path(kind), "");
    EXPECT_LT(largest_difference(alone, want), 1e-10) << kind;
  }
}

TEST_F(OptimizerResume, AnotherOptimizerIsRefusedByName) {
  trained(spec_of("lion", {}), "", path("lion"));
  const auto refusal = [&](const RunSpec& spec, const std::string& from) {
    try {
      trained(spec, path(from), "");
      return std::string();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal(spec_of("muon", {}), "lion"),
            "optimizer.kind = \"muon\": must be the optimizer of " + path("lion") + "; nearest valid is \"lion\"");
  RunSpec plain = spec_of("sgd", {});
  plain.optimizer.momentum = 0;
  trained(plain, "", path("plain"));
  EXPECT_EQ(refusal(spec_of("sgd", {}), "plain"),
            "optimizer.momentum = 0.95: must be 0 as in " + path("plain") + "; nearest valid is 0");
}

}  // namespace
}  // namespace braid::train::optimizer_layouts_test
