// The message where nothing fits, beside what searches of larger clusters find.
#include <gtest/gtest.h>

#include <regex>

#include "braid/plan/cluster.h"
#include "braid/plan/cluster_file.h"
#include "braid/plan/cluster_predictor.h"
#include "braid/plan/reasons.h"

namespace braid::plan::shortage_test {
namespace {

Cluster small_nodes(int nodes) {
  DeviceGroup group{.per_node = 2, .nodes = nodes, .memory_bytes = kGib / 2, .memory_bytes_per_second = 1e11};
  group.peaks = {{DType::Float32, 1e13}};
  return {.name = "small", .devices = {group}, .node = {1e10, 1e-6}, .network = {1e9, 1e-5}};
}

SearchRequest request(const Cluster& cluster) {
  SearchRequest asked;
  asked.space.num_devices = cluster.num_devices();
  asked.space.devices_per_node = 2;
  asked.space.run.model = {.layers = 16, .heads = 16, .width = 1024, .context = 256, .vocab = 8000};
  asked.space.run.train.batch = 64;
  asked.memory_bytes = static_cast<int64_t>(cluster.with_least_memory().usable_bytes());
  asked.top = 1;
  return asked;
}

size_t num_found(int nodes) {
  const Cluster cluster = small_nodes(nodes);
  ClusterPredictor predictor(cluster, {});
  return search(request(cluster), predictor).layouts.size();
}

TEST(Shortage, SaysTheNodesThatWouldDo) {
  const Cluster cluster = small_nodes(1);
  const std::string said = shortage(request(cluster), cluster, {});
  const std::regex form(
      R"(no layout fits into 512\.0 MiB; the leanest needs [1-9]\.\d GiB \(.*\); (\d+) nodes would do)");
  std::smatch match;
  ASSERT_TRUE(std::regex_match(said, match, form)) << said;
  const int nodes = std::stoi(match[1]);
  EXPECT_GT(num_found(nodes), 0u) << said;
  for (int fewer = 1; fewer < nodes; ++fewer) EXPECT_EQ(num_found(fewer), 0u) << fewer << ": " << said;
}

TEST(Shortage, SaysThatNoMeshTakesAllDevices) {
  const Cluster cluster = small_nodes(17);
  EXPECT_EQ(shortage(request(cluster), cluster, {}),
            "no mesh of this run takes all 34 devices: tensor ranks divide heads, and data ranks the batch of 64 "
            "sequences");
  SearchRequest pinned = request(cluster);
  pinned.space.pinned = {"mesh.pipe"};
  EXPECT_TRUE(shortage(pinned, cluster, {}).ends_with(" sequences; pinned are mesh.pipe"));
}

TEST(Shortage, SaysTheRuleThatPinsBreak) {
  SearchRequest pinned = request(small_nodes(1));
  pinned.space.run.sync.zero_group = 3;
  pinned.space.pinned = {"sync.zero_group"};
  const std::string said = shortage(pinned, small_nodes(1), {});
  EXPECT_NE(said.find("layouts on 2 devices is one that braid train takes (sync.zero_group = 3: must be 0 or divide"),
            std::string::npos)
      << said;
}

// Weight gradients that wait hold more than activations that are computed again.
TEST(Shortage, NeedsMoreThanThereIs) {
  Cluster node = small_nodes(1);
  node.devices[0].per_node = 4;
  node.network = {};
  SearchRequest asked = request(node);
  asked.space.devices_per_node = 4;
  asked.space.run.mesh.pipe = 4;
  asked.space.run.pipeline.schedule = "zb-2p";
  asked.space.pinned = {"mesh.pipe", "mesh.data", "mesh.tensor", "pipeline.schedule"};
  const std::string said = shortage(asked, node, {});
  std::smatch match;
  const std::regex form(
      R"(no layout fits into 512\.0 MiB; the leanest needs ([\d.]+) (MiB|GiB).*must have a \[network\])");
  ASSERT_TRUE(std::regex_match(said, match, form)) << said;
  EXPECT_TRUE(match[2] == "GiB" || std::stod(match[1]) > 512) << said;
  ClusterPredictor predictor(node, {});
  EXPECT_EQ(search(asked, predictor).layouts.size(), 0u);
}

}  // namespace
}  // namespace braid::plan::shortage_test
