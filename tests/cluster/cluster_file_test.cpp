#include "braid/cluster/cluster_file.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/cluster/cluster_presets.h"
#include "braid/cluster/units.h"

namespace braid::cluster_file_test {
namespace {

constexpr const char* kTwoKinds = R"(
name = "two kinds"
nodes = 3
[[devices]]
name = "fast"
per_node = 8
nodes = 1
memory_gib = 80.0
memory_gbps = 2000
peak_tflops = { bfloat16 = 312, float32 = 19.5 }
efficiency = [
  { type = "bfloat16", gflop = 100, share = 0.72 },
  { type = "bfloat16", gflop = 1, share = 0.35 },
]
[[devices]]
name = "slow"
per_node = 4
nodes = 2
memory_gib = 32
memory_gbps = 900
peak_tflops = { float16 = 125 }
shared_cores = true
[node]
link_gbps = 300
latency_us = 3
[network]
gbps = 25
latency_us = 8
[disk]
read_gbps = 6
write_gbps = 4
[failures]
mtbf_hours_per_device = 50000
restart_seconds = 120
)";

std::string complaint(const std::string& text) {
  try {
    parse_cluster(text, "c");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ClusterFile, IsReadInItsUnits) {
  const Cluster cluster = parse_cluster(kTwoKinds, "c");
  EXPECT_EQ(cluster.name, "two kinds");
  ASSERT_EQ(cluster.devices.size(), 2u);
  EXPECT_EQ(cluster.num_nodes(), 3);
  EXPECT_EQ(cluster.num_devices(), 16);
  const DeviceGroup& fast = cluster.devices[0];
  EXPECT_EQ(fast.memory_bytes, 80 * kGib);
  EXPECT_EQ(fast.memory_bytes_per_second, 2e12);
  EXPECT_EQ(fast.peaks, (std::vector<PeakRate>{{DType::Float32, 19.5e12}, {DType::BFloat16, 312e12}}));
  EXPECT_EQ(fast.shares, (std::vector<ProductShare>{{DType::BFloat16, 1e9, 0.35}, {DType::BFloat16, 1e11, 0.72}}));
  EXPECT_FALSE(fast.shared_cores);
  EXPECT_TRUE(cluster.devices[1].shared_cores);
  EXPECT_EQ(cluster.node, (Link{300e9, 3e-6}));
  EXPECT_EQ(cluster.network, (Link{25e9, 8e-6}));
  EXPECT_EQ(cluster.disk, (Disk{6e9, 4e9}));
  EXPECT_EQ(cluster.failures, (Failures{50000 * 3600.0, 120}));
}

TEST(ClusterFile, WhatIsWrittenIsReadAgain) {
  for (const std::string& name : cluster_preset_names()) {
    const Cluster cluster = with_nodes(*cluster_preset(name), 4, "--nodes");
    EXPECT_EQ(parse_cluster(cluster_text(cluster), name), cluster) << cluster_text(cluster);
  }
  const Cluster two = parse_cluster(kTwoKinds, "c");
  EXPECT_EQ(parse_cluster(cluster_text(two), "d"), two);
}

TEST(ClusterFile, EverythingThatIsWrongIsSaidAtOnce) {
  std::string bad = replaced(kTwoKinds, "nodes = 3", "nodes = 4\nnods = 1");
  bad = replaced(bad, "memory_gbps = 2000", "memory_gbps = -1");
  bad = replaced(bad, "share = 0.72", "share = 1.5");
  bad = replaced(bad, "type = \"bfloat16\", gflop = 1,", "type = \"bf16\", gflop = 1,");
  bad = replaced(bad, "float16 = 125", "fp16 = 125");
  bad = replaced(bad, "[network]\ngbps = 25\nlatency_us = 8\n", "");
  bad = replaced(bad, "read_gbps = 6", "read_gbps = \"six\"");
  EXPECT_EQ(complaint(bad),
            "c:10: devices[0].memory_gbps = -1: must be a number more than 0\n"
            "c:13: devices[0].efficiency[0].share = 1.5: must be a number more than 0 and at most 1; nearest valid is "
            "1\n"
            "c:14: devices[0].efficiency[1].type = \"bf16\": must be one of \"float32\", \"float64\", \"bfloat16\", "
            "\"float16\"; nearest valid is \"bfloat16\"\n"
            "c:22: devices[1].peak_tflops.fp16 = 125: is not a known key; nearest valid is float16\n"
            "c:3: nodes = 4: must be the 3 nodes of all devices; nearest valid is 3\n"
            "c: network: must be given where there are several nodes\n"
            "c:28: disk.read_gbps = \"six\": must be a number more than 0\n"
            "c:4: nods = 1: is not a known key; nearest valid is nodes");
}

TEST(ClusterFile, NodesOfTheOnlyKindAreThoseOfAll) {
  const std::string one = R"(nodes = 5
[[devices]]
per_node = 1
memory_gib = 1
memory_gbps = 1
peak_tflops = { float32 = 1 }
[network]
gbps = 1
latency_us = 0
)";
  EXPECT_EQ(parse_cluster(one, "c").devices[0].nodes, 5);
  EXPECT_EQ(with_nodes(parse_cluster(one, "c"), 7, "--nodes").num_devices(), 7);
  EXPECT_EQ(with_nodes(parse_cluster(kTwoKinds, "c"), 6, "--nodes").devices[1].nodes, 4);
  EXPECT_THROW(with_nodes(parse_cluster(kTwoKinds, "c"), 4, "--nodes"), ConfigError);
}

TEST(ClusterFile, ANameThatNobodyKnowsIsRefusedWithTheKnown) {
  try {
    load_cluster("dgx-a100-80g", "--cluster");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "--cluster = \"dgx-a100-80g\": must be a file, or one of dgx-a100-80gb, dgx-h100, dgx2-v100-32gb; nearest "
        "valid is dgx-a100-80gb");
  }
}

}  // namespace
}  // namespace braid::cluster_file_test
