// Combines probes into the rates of a cluster. If ranks compute on cores, the rates are per core.
#include "braid/train/run_rates.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "braid/base/host.h"
#include "braid/base/host_facts.h"
#include "braid/ckpt/exchange.h"
#include "braid/comm/agree.h"
#include "braid/comm/op_name.h"
#include "braid/nn/kernels/product_bf16.h"
#include "braid/plan/rank_shards.h"
#include "braid/train/compute_device.h"
#include "braid/train/host_probe.h"
#include "braid/train/kernel_probe.h"
#include "braid/train/link_probe.h"
#include "braid/train/measuring.h"
#include "braid/train/rank_model.h"

namespace braid::train {
namespace {

// Measures the link of the first pair of ranks that shares a host, or does not; {} if there is none.
plan::Link measured_link(const std::vector<int>& host_of_rank, bool shared, at::Device device, Communicator& world) {
  for (int first = 0; first < world.size(); ++first) {
    for (int second = first + 1; second < world.size(); ++second) {
      if ((host_of_rank[first] == host_of_rank[second]) != shared) continue;
      const LinkSpeed speed = measured_pair(world, {first, second}, device);
      return {speed.bytes_per_second, speed.latency_seconds};
    }
  }
  return {};
}

// Adds the rates of one device, or one core. A rank computes on `of_rank` of them.
void add_speeds(const RunSpec& spec, at::Device device, int of_rank, plan::DeviceGroup& group, Communicator& ranks) {
  const BlockSpeed block = measured_block(spec, device, ranks);
  group.streams.push_back({block.elementwise.bytes, block.elementwise.bytes_per_second / of_rank});
  for (const CopySpeed& copy : measured_copies(device, ranks)) {
    if (copy.bytes > block.elementwise.bytes) group.streams.push_back({copy.bytes, copy.bytes_per_second / of_rank});
  }
  group.memory_bytes_per_second = group.streams.back().bytes_per_second;
  const double best = std::ranges::max_element(block.products, {}, &ProductSpeed::flops_per_second)->flops_per_second;
  group.peaks.push_back({spec.train.dtype, best / of_rank});
  for (const ProductSpeed& product : block.products) {
    group.shares.push_back({spec.train.dtype, product.flops, product.flops_per_second / best});
  }
  const AttentionSpeed& attention = block.attention;
  group.attention.push_back(
      {spec.train.dtype, attention.context, attention.forward / of_rank, attention.backward / of_rank});
}

}  // namespace

int num_hosts(const std::vector<int>& host_of_rank) {
  return host_of_rank.empty() ? 1 : 1 + std::ranges::max(host_of_rank);
}

bool computes(const std::vector<int>& host_of_rank, int rank, int per_node) {
  const auto here = host_of_rank.begin() + rank;
  return std::count(host_of_rank.begin(), here, *here) < per_node;
}

plan::Cluster measured_rates(const RunSpec& spec, std::vector<int> hosts, Communicator& world) {
  const comm::CallName name("rates of the machine");
  const at::Device device = compute_device(spec);
  const int num_all_hosts = num_hosts(hosts);
  hosts.resize(static_cast<size_t>(world.size()));  // of the mesh
  plan::Cluster cluster;
  cluster.rates = plan::RatesFrom::Measured;
  plan::DeviceGroup group;
  group.shared_cores = device.is_cpu();
  const bool here = device.is_cpu() && kernels::has_product_bf16();
  group.bfloat16_products = comm::agree_all(world, "bfloat16 products", here);
  group.per_node = device.is_cpu() ? num_cores() : static_cast<int>(std::ranges::count(hosts, 0));
  group.nodes = num_hosts(hosts) == 1 ? 1 : num_all_hosts;
  group.memory_bytes = static_cast<double>(host_facts().memory_bytes) / group.per_node;
  cluster.server_nodes = num_all_hosts - group.nodes;
  cluster.devices.push_back(group);
  const int of_rank = device.is_cpu() ? plan::cores_of_rank(spec, cluster, group.per_node) : 1;
  const bool measures = computes(hosts, world.rank(), group.per_node);
  const auto measuring = world.split(measures ? 0 : 1, world.rank(), "rates");
  const auto measure = [&] {
    if (!measures) return;
    add_speeds(spec, device, of_rank, group, *measuring);
    if (spec.mesh.tensor == 1) return;
    const auto here = measuring->split(hosts[world.rank()], world.rank(), "rates of a host");
    group.skew = measured_skew(spec, device, *here);
  };
  ckpt::all_or_none(measure, world);
  cluster.devices.front() = std::move(group);
  cluster.node = measured_link(hosts, true, device, world);
  cluster.network = measured_link(hosts, false, device, world);
  const bool moves = spec.memory.optimizer == Tier::Disk || spec.memory.activations == Tier::Disk;
  if (moves && world.rank() == 0) {
    const DiskSpeed speed = measured_disk(spec.memory.paths.empty() ? spec.train.out : spec.memory.paths.front());
    cluster.disk = {speed.read_bytes_per_second, speed.write_bytes_per_second};
  }
  // The prediction places ranks in blocks, so it may put ranks of several hosts on one node.
  if (cluster.node == plan::Link()) cluster.node = cluster.network;
  return cluster;
}

}  // namespace braid::train
