// The numbers of data sheets, multiplied by the fractions that runs reach.
#include "braid/plan/cluster_presets.h"

#include <utility>

#include "braid/plan/cluster.h"

namespace braid::plan {
namespace {

constexpr Failures kFailures{50000 * kHour, 120};
constexpr double kSave = 5;  // seconds
constexpr Reserve kReserve{0.9 * kGib, 1.5 * kGib, 1.6 * kGib}, kSmallReserve{0.6 * kGib, 0.8 * kGib, 0.6 * kGib};

// Fractions of a data sheet's rates that runs reach.
constexpr double kMemory = 0.613, kNode = 0.8, kNetwork = 0.88;
constexpr double kCopies = 0.85;  // fraction of the memory's rate that large copies reach
// Products of H100s reach kH100Products of the fractions of A100s, and at 500 W k500Watt of the fractions at 700 W.
constexpr double kH100Products = 0.92, k500Watt = 0.67;

// Returns the fractions of the peak that 16-bit products reach (cluster_presets.h).
std::vector<ProductShare> shares(DType type) {
  return {{type, 1e9, 0.35}, {type, 10e9, 0.7}, {type, 100e9, 0.7}, {type, 1000e9, 0.78}};
}

Cluster dgx_a100() {
  return {"dgx-a100-80gb",
          {{.name = "A100-SXM4-80GB",
            .per_node = 8,
            .memory_bytes = 80 * kGib,
            .memory_bytes_per_second = kMemory * 2039 * kGiga,
            .peaks = {{DType::Float32, 19.5 * kTera}, {DType::BFloat16, 312 * kTera}, {DType::Float16, 312 * kTera}},
            .shares = shares(DType::BFloat16),
            .reserve = kReserve}},
          {kNode * 300 * kGiga, 3e-6},
          {kNetwork * 25 * kGiga, 8e-6},
          {6 * kGiga, 4 * kGiga, kSave},
          kFailures,
          {2048 * kGib, kNode * 32 * kGiga}};
}

// Returns a node of eight H100 cards. `products` is the ratio of the fractions that their products reach to those of
// A100s.
Cluster of_h100s(const char* name, DeviceGroup card, double products) {
  card.per_node = 8;
  card.peaks = {{DType::Float32, 66.9 * kTera}, {DType::BFloat16, 989.4 * kTera}, {DType::Float16, 989.4 * kTera}};
  card.shares = shares(DType::BFloat16);
  for (ProductShare& row : card.shares) row.share *= products;
  card.attention = {{DType::BFloat16, 8192, 300 * kTera, 250 * kTera}};
  card.reserve = kReserve;
  return {name,
          {std::move(card)},
          {kNode * 450 * kGiga, 3e-6},
          {kNetwork * 50 * kGiga, 8e-6},
          {10 * kGiga, 8 * kGiga, kSave},
          kFailures,
          {2048 * kGib, kNode * 64 * kGiga}};
}

// The card of torchtitan's benchmarks.
Cluster h100_500w() {
  return of_h100s(
      "h100-96gb-500w",
      {.name = "H100-SXM5-96GB-500W", .memory_bytes = 95 * kGib, .memory_bytes_per_second = kCopies * 2400 * kGiga},
      kH100Products * k500Watt);
}

Cluster dgx_h100() {
  return of_h100s(
      "dgx-h100",
      {.name = "H100-SXM5-80GB", .memory_bytes = 80 * kGib, .memory_bytes_per_second = kMemory * 3350 * kGiga},
      kH100Products);
}

Cluster dgx2_v100() {
  return {"dgx2-v100-32gb",
          {{.name = "V100-SXM3-32GB",
            .per_node = 16,
            .memory_bytes = 32 * kGib,
            .memory_bytes_per_second = kMemory * 900 * kGiga,
            .peaks = {{DType::Float32, 15.7 * kTera}, {DType::Float16, 125 * kTera}},
            .shares = shares(DType::Float16),
            .reserve = kSmallReserve}},
          {kNode * 150 * kGiga, 3e-6},
          {kNetwork * 6.25 * kGiga, 8e-6},
          {3 * kGiga, 2 * kGiga, kSave},
          kFailures,
          {1536 * kGib, kNode * 16 * kGiga}};
}

}  // namespace

std::vector<std::string> cluster_preset_names() {
  return {"dgx-a100-80gb", "dgx-h100", "h100-96gb-500w", "dgx2-v100-32gb"};
}

std::optional<Cluster> cluster_preset(const std::string& name) {
  for (const Cluster& cluster : {dgx_a100(), dgx_h100(), h100_500w(), dgx2_v100()}) {
    if (cluster.name == name) return cluster;
  }
  return {};
}

}  // namespace braid::plan
