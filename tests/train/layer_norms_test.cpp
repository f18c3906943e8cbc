// Gradient norms by layer: parts of the global norm, the same on every layout.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/text.h"
#include "tests/train/layout_run.h"

namespace braid::train::layer_norms_test {
namespace {

using LayerNorms = std::vector<std::pair<std::string, double>>;

struct Layout {
  const char* name;
  MeshSpec mesh;
  void (*change)(RunSpec& spec) = [](RunSpec&) {};
};

const std::vector<Layout> kLayouts = {
    {"one rank", {}},
    {"data", {.data = 2}},
    {"tensor", {.tensor = 2}},
    {"pipe, tied", {.pipe = 2}},
    {"mirrored", {.pipe = 2}, [](RunSpec& spec) { spec.pipeline.schedule = "dualpipe"; }},
    {"zero 1", {.data = 2}, [](RunSpec& spec) { spec.sync.zero = 1; }},
    {"zero 3", {.data = 2}, [](RunSpec& spec) { spec.sync.zero = 3; }},
    {"all", {.pipe = 2, .data = 2, .tensor = 2}},
};

RunSpec spec_of(const Layout& layout) {
  RunSpec spec = tiny_spec(2, 8);
  spec.model.layers = 4;
  spec.mesh = layout.mesh;
  layout.change(spec);
  return spec;
}

LayerNorms norms_of_second_step(const RunSpec& spec) {
  LayerNorms norms;
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.step();
    const StepReport report = trainer.step();
    double squares = 0;
    for (const auto& [layer, norm] : report.layer_grad_norms) squares += norm * norm;
    EXPECT_NEAR(std::sqrt(squares), report.grad_norm, 1e-12 * report.grad_norm);
    if (trainer.groups().world.rank() == 0) norms = report.layer_grad_norms;
  });
  return norms;
}

TEST(LayerNorms, AddUpToTheGlobalNormAndAreTheSameOnEveryLayout) {
  const LayerNorms want = norms_of_second_step(spec_of(kLayouts[0]));
  std::vector<std::string> layers;
  for (const auto& [layer, norm] : want) {
    layers.push_back(layer);
    EXPECT_GT(norm, 0) << layer;
  }
  EXPECT_EQ(layers, (std::vector<std::string>{"embedding", "blocks.0", "blocks.1", "blocks.2", "blocks.3", "head"}));
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    const LayerNorms got = norms_of_second_step(spec_of(layout));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].first, want[i].first);
      EXPECT_NEAR(got[i].second, want[i].second, 1e-9 * want[i].second) << want[i].first;
    }
  }
}

// A layer's is that of the gradients as they are collected.
TEST(LayerNorms, AreOfTheGradients) {
  on_every_rank(spec_of(kLayouts[0]), [](Trainer& trainer) {
    const StepReport report = trainer.step();
    std::map<std::string, at::Tensor> gradients;
    collect(trainer, gradients, Held::Gradients);
    double squares = 0;
    for (const auto& [name, gradient] : gradients) {
      if (name.starts_with("blocks.1.")) squares += gradient.square().sum().item<double>();
    }
    EXPECT_NEAR(report.layer_grad_norms[2].second, std::sqrt(squares), 1e-12);
  });
}

// Replicas with gradients of their own: as the global norm, the root of their mean square.
TEST(LayerNorms, OfReplicasThatTrainApart) {
  RunSpec spec = spec_of({"local", {.data = 2}});
  spec.sync.replication = ReplicationKind::LocalSgd;
  spec.sync.period = 2;
  EXPECT_EQ(norms_of_second_step(spec).size(), 6u);
}

}  // namespace
}  // namespace braid::train::layer_norms_test
