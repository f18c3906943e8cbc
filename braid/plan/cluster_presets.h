// Clusters that are known by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/plan/cluster.h"

namespace braid::plan {

std::vector<std::string> cluster_preset_names();

// Returns the preset of that name with one node (with_nodes() makes larger ones), or nothing if the name is unknown.
//
// Peaks, memory sizes and links are those of data sheets:
//
//   dgx-a100-80gb    NVIDIA, "A100 Tensor Core GPU" data sheet (2022): 312 TFLOP/s in bfloat16, 19.5 in float32, 80 GB
//                    at 2,039 GB/s, NVLink 600 GB/s both ways; DGX A100 (2021): eight 200 Gbit/s InfiniBand links
//   dgx-h100         "H100 Tensor Core GPU" data sheet (2023), SXM: 989.4 and 66.9 TFLOP/s, 80 GB at 3,350 GB/s, NVLink
//                    900 GB/s both ways; DGX H100: eight 400 Gbit/s links
//   h100-96gb-500w   H100 SXM with 96 GB HBM2e at 2,400 GB/s, limited to 500 W, as in torchtitan's benchmarks of
//                    December 2024; peaks and links as dgx-h100
//   dgx2-v100-32gb   "Tesla V100" data sheet (2020), SXM3: 125 TFLOP/s in float16, 15.7 in float32, 32 GB at 900 GB/s,
//                    NVLink 300 GB/s both ways; DGX-2: sixteen GPUs, eight 100 Gbit/s links
//
// The presets' hosts have 2, 2, 2 and 1.5 TB of memory, in this order. Each device has a link to its host: 16 lanes of
// PCIe 4, 5, 5 and 3, with 64, 128, 128 and 32 GB/s both ways.
//
// Runs reach only a fraction of these rates. A matrix product of 10 or 100 GFLOP reaches 0.7 of the peak, one of 1,000
// GFLOP 0.78. Memory reaches 0.613, links within a node 0.8, and the network 0.88. These fractions are fitted for the
// A100, starting from common values, to four published measurements (docs/published_rows.md names them). The other
// presets use the same fractions. The fraction at 1 GFLOP, 0.35, is a guess; no published measurement depends on it.
//
// Products on H100s reach 0.92 times these fractions, and 0.67 times that at 500 W. Attention of H100s has PyTorch's
// rates, 300 TFLOP/s forward and 250 backward (sources: docs/published_rows.md). The memory of h100-96gb-500w reaches
// 0.85.
//
// Devices of 80 GiB and more reserve 0.9 GiB for the context (0.4 for the driver, 0.5 for kernels), 1.5 GiB for NCCL,
// and 1.6 GiB, one fiftieth of 80, for fragmentation. Devices of 32 GiB reserve 0.6, 0.8 and 0.6 GiB. A save of a
// checkpoint takes at least 5 s. The reserves and this time are estimates.
std::optional<Cluster> cluster_preset(const std::string& name);

}  // namespace braid::plan
