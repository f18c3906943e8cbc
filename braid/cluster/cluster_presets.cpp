// Numbers of data sheets, less what is reached of them.
#include "braid/cluster/cluster_presets.h"

#include "braid/cluster/units.h"

namespace braid {
namespace {

constexpr Failures kFailures{50000 * kHour, 120};

// What is reached of the rates of data sheets.
constexpr double kMemory = 0.613, kNode = 0.8, kNetwork = 0.88;

// Of products of 16-bit numbers, as cluster_presets.h says.
std::vector<ProductShare> shares(DType type) {
  return {{type, 1e9, 0.35}, {type, 10e9, 0.7}, {type, 100e9, 0.7}, {type, 1000e9, 0.78}};
}

Cluster dgx_a100() {
  return {"dgx-a100-80gb",
          {{"A100-SXM4-80GB",
            8,
            1,
            80 * kGib,
            kMemory * 2039 * kGiga,
            {{DType::Float32, 19.5 * kTera}, {DType::BFloat16, 312 * kTera}, {DType::Float16, 312 * kTera}},
            shares(DType::BFloat16)}},
          {kNode * 300 * kGiga, 3e-6},
          {kNetwork * 25 * kGiga, 8e-6},
          {6 * kGiga, 4 * kGiga},
          kFailures,
          {2048 * kGib, kNode * 32 * kGiga}};
}

Cluster dgx_h100() {
  return {"dgx-h100",
          {{"H100-SXM5-80GB",
            8,
            1,
            80 * kGib,
            kMemory * 3350 * kGiga,
            {{DType::Float32, 66.9 * kTera}, {DType::BFloat16, 989.4 * kTera}, {DType::Float16, 989.4 * kTera}},
            shares(DType::BFloat16)}},
          {kNode * 450 * kGiga, 3e-6},
          {kNetwork * 50 * kGiga, 8e-6},
          {10 * kGiga, 8 * kGiga},
          kFailures,
          {2048 * kGib, kNode * 64 * kGiga}};
}

Cluster dgx2_v100() {
  return {"dgx2-v100-32gb",
          {{"V100-SXM3-32GB",
            16,
            1,
            32 * kGib,
            kMemory * 900 * kGiga,
            {{DType::Float32, 15.7 * kTera}, {DType::Float16, 125 * kTera}},
            shares(DType::Float16)}},
          {kNode * 150 * kGiga, 3e-6},
          {kNetwork * 6.25 * kGiga, 8e-6},
          {3 * kGiga, 2 * kGiga},
          kFailures,
          {1536 * kGib, kNode * 16 * kGiga}};
}

}  // namespace

std::vector<std::string> cluster_preset_names() { return {"dgx-a100-80gb", "dgx-h100", "dgx2-v100-32gb"}; }

std::optional<Cluster> cluster_preset(const std::string& name) {
  for (const Cluster& cluster : {dgx_a100(), dgx_h100(), dgx2_v100()}) {
    if (cluster.name == name) return cluster;
  }
  return {};
}

}  // namespace braid
