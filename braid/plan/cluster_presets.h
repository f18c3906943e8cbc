// Clusters that are known by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/plan/cluster.h"

namespace braid::plan {

std::vector<std::string> cluster_preset_names();

// One node of it (with_nodes()). Peaks, memories and links are those of data sheets, rates but for the part that is
// reached:
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
// Hosts have 2, 2, 2 and 1.5 TB, each device a link to them by PCIe 4, 5, 5 and 3 of 16 lanes: 64, 128, 128 and 32 GB/s
// both ways.
//
// Of those rates a run reaches a part: a product 0.7 of the peak at 10 and at 100 GFLOP, 0.78 at 1,000; memory 0.613,
// links of the node 0.8, of the network 0.88. They are fitted for the A100, from where such parts commonly lie, so that
// predictions (predict_run.h) of four published rows come near (docs/published_rows.md names them), and taken over for
// the others. 0.35 at 1 GFLOP is a guess on which no published row depends.
//
// Products of H100s reach 0.92 of those shares, at 500 W 0.67 of that; their attention is that of PyTorch, 300 TFLOP/s
// forward and 250 backward; docs/published_rows.md has the sources. The memory of h100-96gb-500w reaches 0.85.
//
// Reserved are of 80 GiB 0.9 for the context (the driver keeps 0.4 for itself, kernels take 0.5), 1.5 for NCCL and 1.6,
// one fiftieth, for fragmentation; of 32 GiB 0.6, 0.8 and 0.6. A save costs 5 s at least. Both are estimates.
//
// Nothing when there is none of that name.
std::optional<Cluster> cluster_preset(const std::string& name);

}  // namespace braid::plan
