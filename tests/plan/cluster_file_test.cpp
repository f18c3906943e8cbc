#include "braid/plan/cluster_file.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/plan/cluster.h"
#include "braid/plan/cluster_presets.h"

namespace braid::plan::cluster_file_test {
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
attention = [{ type = "bfloat16", context = 2048, forward_tflops = 160, backward_tflops = 140 }]
streams = [{ mib = 64, gbps = 2039 }, { mib = 1, gbps = 4000 }]
[[devices]]
name = "slow"
per_node = 4
nodes = 2
memory_gib = 32
memory_gbps = 900
peak_tflops = { float16 = 125 }
shared_cores = true
bfloat16_products = true
skew = 0.25
[node]
link_gbps = 300
latency_us = 3
[network]
gbps = 25
latency_us = 8
[host]
memory_gib = 512
link_gbps = 26

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
  EXPECT_EQ(fast.attention, (std::vector<AttentionRate>{{DType::BFloat16, 2048, 160e12, 140e12}}));
  EXPECT_EQ(fast.streams, (std::vector<StreamRate>{{kMib, 4000e9}, {64 * kMib, 2039e9}}));
  EXPECT_FALSE(fast.shared_cores);
  EXPECT_TRUE(cluster.devices[1].shared_cores);
  EXPECT_FALSE(fast.bfloat16_products);
  EXPECT_TRUE(cluster.devices[1].bfloat16_products);
  EXPECT_EQ(fast.skew, 0);
  EXPECT_EQ(cluster.devices[1].skew, 0.25);
  EXPECT_EQ(cluster.node, (Link{300e9, 3e-6}));
  EXPECT_EQ(cluster.network, (Link{25e9, 8e-6}));
  EXPECT_EQ(cluster.host, (HostMemory{512 * kGib, 26e9}));
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
            "c:24: devices[1].peak_tflops.fp16 = 125: is not a known key; nearest valid is float16\n"
            "c:3: nodes = 4: must be the 3 nodes of all devices; nearest valid is 3\n"
            "c: network: must be given where there are several nodes\n"
            "c:36: disk.read_gbps = \"six\": must be a number more than 0\n"
            "c:4: nods = 1: is not a known key; nearest valid is nodes");
}

TEST(ClusterFile, ReservesSavesAndTheSourceOfRatesAreOptional) {
  std::string more =
      replaced(kTwoKinds, "memory_gib = 80.0", "memory_gib = 80.0\nreserve_gib = { nccl = 1.5, context = 1 }");
  more = replaced(replaced(more, "write_gbps = 4", "write_gbps = 4\nsave_seconds = 3"), "nodes = 3",
                  "rates = \"measured\"\nnodes = 3");
  const Cluster cluster = parse_cluster(more, "c");
  EXPECT_EQ(cluster.devices[0].reserve, (Reserve{1 * kGib, 1.5 * kGib, 0}));
  EXPECT_EQ(cluster.devices[0].usable_bytes(), 77.5 * kGib);
  EXPECT_EQ(cluster.devices[1].usable_bytes(), 32 * kGib);
  EXPECT_EQ(cluster.disk.save_seconds, 3);
  EXPECT_EQ(cluster.rates, RatesFrom::Measured);
  EXPECT_EQ(parse_cluster(cluster_text(cluster), "d"), cluster);
  more = replaced(replaced(more, "nccl = 1.5", "ncl = 1.5"), "context = 1 ", "context = 80");
  EXPECT_EQ(complaint(replaced(replaced(more, "\"measured\"", "\"guessed\""), "save_seconds = 3", "save_seconds = -1")),
            "c:3: rates = \"guessed\": must be \"data-sheet\" or \"measured\"\n"
            "c:10: devices[0].reserve_gib.ncl = 1.5: is not a known key; nearest valid is nccl\n"
            "c:10: devices[0].reserve_gib = {ncl = 1.5, context = 80}: must add up to less than memory_gib\n"
            "c:42: disk.save_seconds = -1: must be a number of at least 0; nearest valid is 0");
}

TEST(ClusterFile, AllReducesAreReadByGroupAndSize) {
  const std::string rows =
      "all_reduce = [{ ranks = 4, per_node = 2, mib = 1, us = 50 }, { ranks = 2, per_node = 2, mib = 1, us = 20 }]\n";
  const Cluster cluster = parse_cluster(rows + kTwoKinds, "c");
  EXPECT_EQ(cluster.all_reduces, (std::vector<AllReduceTime>{{2, 2, kMib, 20 * kMicro}, {4, 2, kMib, 50 * kMicro}}));
  EXPECT_EQ(parse_cluster(cluster_text(cluster), "d"), cluster);
  const std::string twice = replaced(replaced(rows, "ranks = 4", "ranks = 2"), "us = 50", "us = 0");
  EXPECT_EQ(complaint(twice + kTwoKinds),
            "c:1: all_reduce[0].us = 0: must be a number more than 0\n"
            "c:1: all_reduce[1].mib = 1: must be in one row of its group only");
  EXPECT_EQ(complaint(replaced(rows, "ranks = 2", "ranks = 1") + kTwoKinds),
            "c:1: all_reduce[1].ranks = 1: must be at least 2, and at least per_node");
}

TEST(ClusterFile, SeveralKindsSayHowManyNodesEachHas) {
  EXPECT_EQ(complaint(replaced(kTwoKinds, "per_node = 4\nnodes = 2\n", "per_node = 4\n")),
            "c: devices[1].nodes: must be given");
}

TEST(ClusterFile, LinksAreNeededWhereDevicesAreNotAlone) {
  std::string none = replaced(kTwoKinds, "[network]\ngbps = 25\nlatency_us = 8\n", "");
  none = replaced(none, "[node]\nlink_gbps = 300\nlatency_us = 3\n", "");
  EXPECT_EQ(complaint(none),
            "c: node: must be given where there are several devices on a node\n"
            "c: network: must be given where there are several nodes");
}

TEST(ClusterFile, HasNoMoreDevicesThanCanBeCounted) {
  std::string many = replaced(kTwoKinds, "nodes = 3\n", "nodes = 1048578\n");
  many = replaced(many, "per_node = 4\nnodes = 2\n", "per_node = 1048576\nnodes = 1048576\n");
  EXPECT_NE(complaint(many).find("must be at most 16777216 in all"), std::string::npos) << complaint(many);
  EXPECT_THROW(with_nodes(parse_cluster(kTwoKinds, "c"), 3 << 22, "--nodes"), ConfigError);
}

TEST(ClusterFile, ATypeHasOneRowForANumberOfOperations) {
  EXPECT_EQ(complaint(replaced(kTwoKinds, "gflop = 100,", "gflop = 1,")),
            "c:13: devices[0].efficiency[1].gflop = 1: must be in one row of its type only");
}

TEST(ClusterFile, UnknownTypesHaveANearestOneOrNone) {
  EXPECT_EQ(complaint(replaced(kTwoKinds, "type = \"bfloat16\", gflop = 1,", "type = \"complex\", gflop = 1,")),
            "c:13: devices[0].efficiency[1].type = \"complex\": must be one of \"float32\", \"float64\", \"bfloat16\", "
            "\"float16\"");
}

TEST(ClusterFile, BlankLinesAreAllowedAndRepeatedKeysAreNot) {
  EXPECT_EQ(complaint(replaced(kTwoKinds, "nodes = 3\n", "\n \t\nnodes = 3\n\n")), "");
  EXPECT_EQ(complaint(replaced(kTwoKinds, "nodes = 3\n", "nodes = 3\nnodes = 3\n")).substr(0, 4), "c:4:");
  EXPECT_EQ(complaint(replaced(kTwoKinds, "[host]\n", "[network]\n")).substr(0, 5), "c:33:");
}

TEST(ClusterFile, RowsThatCannotBeReadAreLikeNoOther) {
  std::string bad = replaced(kTwoKinds, "type = \"bfloat16\", gflop = 100,", "type = \"bf16\", gflop = 1,");
  bad = replaced(bad, "type = \"bfloat16\", gflop = 1,", "type = \"fp32\", gflop = 1,");
  EXPECT_EQ(complaint(bad),
            "c:12: devices[0].efficiency[0].type = \"bf16\": must be one of \"float32\", \"float64\", \"bfloat16\", "
            "\"float16\"; nearest valid is \"bfloat16\"\n"
            "c:13: devices[0].efficiency[1].type = \"fp32\": must be one of \"float32\", \"float64\", \"bfloat16\", "
            "\"float16\"; nearest valid is \"float32\"");
  bad = replaced(replaced(kTwoKinds, "gflop = 100,", "gflop = -1,"), "gflop = 1,", "gflop = 0,");
  EXPECT_EQ(complaint(bad),
            "c:12: devices[0].efficiency[0].gflop = -1: must be a number more than 0\n"
            "c:13: devices[0].efficiency[1].gflop = 0: must be a number more than 0");
}

TEST(ClusterFile, NodesThatNobodyCanCountAreRefused) {
  std::string many = replaced(kTwoKinds, "nodes = 3\n", "nodes = -3\n");
  many = replaced(many, "per_node = 8\nnodes = 1\n", "per_node = 8\nnodes = 2147483647\n");
  EXPECT_EQ(complaint(many),
            "c:3: nodes = -3: must be an integer from 1 to 1048576; nearest valid is 1\n"
            "c:7: devices[0].nodes = 2147483647: must be an integer from 1 to 1048576; nearest valid is 1048576");
  std::string kinds;
  for (int kind = 0; kind < 1001; ++kind) kinds += "[[devices]]\nnodes = 1048576\n";
  EXPECT_NE(complaint(kinds).find("must hold 1 to 1000 kinds of devices"), std::string::npos);
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

std::string refused_nodes(const Cluster& cluster, int nodes) {
  try {
    with_nodes(cluster, nodes, "--nodes");
  } catch (const ConfigError& error) {
    return error.problems()[0].nearest;
  }
  return "";
}

TEST(ClusterFile, TheNearestNumberOfNodesKeepsTheShares) {
  const Cluster three = parse_cluster(kTwoKinds, "c");  // one node and two
  EXPECT_EQ(refused_nodes(three, 1), "3");
  EXPECT_EQ(refused_nodes(three, 4), "3");
  EXPECT_EQ(refused_nodes(three, 5), "6");
  const Cluster six = with_nodes(three, 6, "--nodes");  // two and four: the half of each will do
  EXPECT_EQ(refused_nodes(six, 3), "");
  EXPECT_EQ(refused_nodes(six, 4), "3");
}

TEST(ClusterFile, ANameThatNobodyKnowsIsRefusedWithTheKnown) {
  try {
    load_cluster("dgx-a100-80g", "--cluster");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "--cluster = \"dgx-a100-80g\": must be a file, or one of dgx-a100-80gb, dgx-h100, h100-96gb-500w, "
                 "dgx2-v100-32gb; nearest "
                 "valid is dgx-a100-80gb");
  }
}

TEST(ClusterFile, TheOrderOfKindsSaysNothing) {
  const std::string whole = kTwoKinds, kind = "[[devices]]";
  const size_t first = whole.find(kind), second = whole.find(kind, first + 1), end = whole.find("[node]");
  ASSERT_LT(second, end);
  const std::string swapped = whole.substr(0, first) + whole.substr(second, end - second) +
                              whole.substr(first, second - first) + whole.substr(end);
  ASSERT_NE(swapped, whole);
  EXPECT_EQ(parse_cluster(swapped, "c"), parse_cluster(whole, "c"));
}

}  // namespace
}  // namespace braid::plan::cluster_file_test
