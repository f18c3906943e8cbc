// A cluster file, and that what is accepted can be written out, read again and given another size.
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/plan/cluster_file.h"
#include "braid/plan/cluster_presets.h"
#include "tests/fuzz/target.h"

namespace braid::fuzz {

using namespace plan;

namespace {

void run_cluster(const std::string& input) {
  const Cluster cluster = parse_cluster(input, "cluster.toml");
  const Cluster again = parse_cluster(cluster_text(cluster), "cluster.toml");
  check(again.num_devices() == cluster.num_devices() && again.devices.size() == cluster.devices.size(),
        "a cluster that is written out has the same devices");
  with_nodes(cluster, cluster.num_nodes(), "--nodes");
}

std::vector<std::string> cluster_seeds() {
  std::vector<std::string> seeds{""};
  for (const std::string& name : cluster_preset_names()) seeds.push_back(cluster_text(*cluster_preset(name)));
  Cluster unlike = *cluster_preset("dgx-a100-80gb");
  DeviceGroup& cores = unlike.devices.emplace_back(unlike.devices[0]);
  cores = {.name = "cores", .per_node = 4, .nodes = 3, .memory_bytes = 1e9, .memory_bytes_per_second = 1e10};
  cores.peaks = {{DType::Float32, 1e11}, {DType::Float64, 5e10}};
  cores.attention = {{DType::Float32, 128, 1e10, 2e10}, {DType::Float32, 1024, 2e10, 3e10}};
  cores.streams = {{1e6, 2e10}, {1e8, 1e10}};
  cores.shared_cores = true;
  unlike.disk = {6e9, 4e9};
  unlike.failures = {1e8, 120};
  seeds.push_back(cluster_text(unlike));
  return seeds;
}

}  // namespace

Target cluster_target() {
  return {"cluster",
          run_cluster,
          cluster_seeds,
          {"\n",
           " = ",
           "[[devices]]\n",
           "devices = []\n",
           "[0]",
           "[node]\n",
           "[network]\n",
           "[disk]\n",
           "[failures]\n",
           "name",
           "nodes",
           "per_node",
           "memory_gib",
           "memory_gbps",
           "peak_tflops",
           "shared_cores",
           "efficiency = [{",
           "attention = [{",
           "streams = [{",
           "}]",
           "type = \"bfloat16\"",
           "gflop",
           "share",
           "context",
           "forward_tflops",
           "backward_tflops",
           "mib",
           "gbps",
           "link_gbps",
           "latency_us",
           "read_gbps",
           "write_gbps",
           "mtbf_hours_per_device",
           "restart_seconds",
           "1048576",
           "1e18",
           "1e-300",
           "inf",
           "nan",
           "-1",
           "true"}};
}

}  // namespace braid::fuzz
