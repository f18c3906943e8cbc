// The largest models of systems that keep model states in host memory, beside what braid predicts with their tiers.
// Sources: Ren et al., "ZeRO-Offload" (2021), 13B parameters on a V100 of 32 GB; DeepSpeed's ZeRO-3 Offload (release of
// March 2021), 40B on the same; Fang et al., "PatrickStar" (arXiv:2108.05818), 68B on 8 A100 of 40 GB with 1 TB. They
// need 14 to 16 bytes of a parameter; braid needs 18, with gradients in float32.
#include <gtest/gtest.h>

#include "braid/plan/cluster_presets.h"
#include "braid/plan/predict_run.h"

namespace braid::plan::published_tiers_test {
namespace {

struct PublishedSize {
  double billions;
  int width;
  int devices;
  double device_bytes, host_bytes;
  Tier parameters;  // optimizer states and gradients are in host memory
  int most_layers;  // of the largest model that braid predicts to fit
};

constexpr PublishedSize kZeroOffload{13, 5120, 1, 32 * kGib, 1.5e12, Tier::Resident, 41};
constexpr PublishedSize kZero3Offload{40, 8192, 1, 32 * kGib, 1.5e12, Tier::Host, 102};
constexpr PublishedSize kPatrickStar{68, 8192, 8, 40 * kGib, 1e12, Tier::Resident, 77};

double billions_of(int layers, int width) { return 12e-9 * layers * width * width; }

Prediction predicted(const PublishedSize& size, int layers, Tier states) {
  RunSpec run;
  run.model = {.layers = layers, .heads = size.width / 128, .width = size.width, .context = 1024, .vocab = 50257};
  run.train.dtype = DType::Float16;
  run.train.microbatch = 1;
  run.train.batch = run.mesh.data = size.devices;
  run.sync.zero = size.devices > 1 ? 3 : 0;
  run.memory.recompute = "full";
  run.memory.optimizer = run.memory.gradients = states;
  run.memory.parameters = states == Tier::Host ? size.parameters : Tier::Resident;
  Cluster cluster = cluster_preset("dgx2-v100-32gb").value();
  cluster.devices.front().per_node = size.devices;
  cluster.devices.front().memory_bytes = size.device_bytes;
  cluster.host.bytes = size.host_bytes;
  return predict_run(run, cluster);
}

TEST(PublishedTiers, TrainModelsThatDoNotFitOnTheDevices) {
  for (const PublishedSize& size : {kZeroOffload, kZero3Offload, kPatrickStar}) {
    SCOPED_TRACE(size.billions);
    EXPECT_TRUE(predicted(size, size.most_layers, Tier::Host).fits());
    EXPECT_FALSE(predicted(size, size.most_layers + 1, Tier::Host).fits());
    EXPECT_FALSE(predicted(size, size.most_layers, Tier::Resident).fits());
  }
}

// PatrickStar's 68B do not fit with 18 bytes of each: 1224 GB, of 1000 GB in host memory and 344 GB on devices, which
// hold activations, gathered weights and reserves too.
TEST(PublishedTiers, AreAsLargeAsPublishedWhereTheBytesOfAParameterAllowIt) {
  EXPECT_NEAR(billions_of(kZeroOffload.most_layers, kZeroOffload.width), 12.9, 0.05);
  EXPECT_NEAR(billions_of(kZero3Offload.most_layers, kZero3Offload.width), 82.1, 0.05);
  EXPECT_NEAR(billions_of(kPatrickStar.most_layers, kPatrickStar.width), 62.0, 0.05);
}

}  // namespace
}  // namespace braid::plan::published_tiers_test
