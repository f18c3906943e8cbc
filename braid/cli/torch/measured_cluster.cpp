// Groups hosts into kinds of devices, and takes the lowest rates of each kind.
#include "braid/cli/torch/measured_cluster.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "braid/base/text.h"
#include "braid/plan/cluster_file.h"

namespace braid::cli {
namespace {

// Hosts with the same processor and number of ranks. They have the same kind of devices.
struct MeasuredKind {
  std::string processor;
  int per_node = 0;
  std::vector<size_t> hosts;
};

std::vector<MeasuredKind> measured_kinds(const train::MeasuredJob& job) {
  std::vector<MeasuredKind> all;
  for (size_t number = 0; number < job.hosts.size(); ++number) {
    const train::JobHost& host = job.hosts[number];
    auto kind = std::ranges::find_if(all, [&](const MeasuredKind& known) {
      return known.processor == host.facts.processor && known.per_node == host.num_ranks;
    });
    if (kind == all.end()) kind = all.insert(kind, {host.facts.processor, host.num_ranks, {}});
    kind->hosts.push_back(number);
  }
  return all;
}

template <class Amount>
double least(const std::vector<size_t>& hosts, const Amount& amount) {
  double found = std::numeric_limits<double>::infinity();
  for (const size_t host : hosts) found = std::min(found, static_cast<double>(amount(host)));
  return found;
}

// The measurements for one element type.
struct TypeSpeeds {
  DType type;
  double train::HostSpeed::*peak;
  std::vector<train::BlockSpeed> train::HostSpeed::*blocks;
};
constexpr TypeSpeeds kTypes[] = {
    {DType::Float32, &train::HostSpeed::float32_flops, &train::HostSpeed::float32_blocks},
    {DType::BFloat16, &train::HostSpeed::bfloat16_flops, &train::HostSpeed::bfloat16_blocks}};

// Adds the rates of matrix products and of attention, each the lowest of the hosts. Hosts measure the same blocks in
// the same order, beginning with the narrowest. Only blocks that the slowest host measured too are used.
void add_rates(const TypeSpeeds& of, const train::MeasuredJob& job, const MeasuredKind& kind,
               plan::DeviceGroup& group) {
  const auto blocks = [&](size_t host) -> const std::vector<train::BlockSpeed>& {
    return job.speed.hosts[host].*of.blocks;
  };
  double peak = least(kind.hosts, [&](size_t host) { return job.speed.hosts[host].*of.peak; });
  const auto count = static_cast<size_t>(least(kind.hosts, [&](size_t host) { return blocks(host).size(); }));
  std::vector<train::ProductSpeed> products;
  for (size_t block = 0; block < count; ++block) {
    const train::BlockSpeed& first = blocks(kind.hosts[0])[block];
    for (size_t row = 0; row < first.products.size(); ++row) {
      const auto rate = [&](size_t host) { return blocks(host)[block].products[row].flops_per_second; };
      products.push_back({first.products[row].flops, least(kind.hosts, rate)});
      peak = std::max(peak, products.back().flops_per_second);
    }
    const auto forward = [&](size_t host) { return blocks(host)[block].attention.forward; };
    const auto backward = [&](size_t host) { return blocks(host)[block].attention.backward; };
    group.attention.push_back(
        {of.type, first.attention.context, least(kind.hosts, forward), least(kind.hosts, backward)});
  }
  group.peaks.push_back({of.type, peak});
  for (const train::ProductSpeed& product : products) {
    group.shares.push_back({of.type, product.flops, product.flops_per_second / peak});
  }
}

// Adds the rates of memory streams by tensor size, for all element types: rates of float32 blocks without their
// products, and rates of copies for larger tensors.
void add_streams(const train::MeasuredJob& job, const MeasuredKind& kind, plan::DeviceGroup& group) {
  const auto add = [&](const auto& speed_of) {
    const double bytes = speed_of(kind.hosts[0]).bytes;
    if (!group.streams.empty() && bytes <= group.streams.back().bytes) return;
    const auto rate = [&](size_t host) { return speed_of(host).bytes_per_second; };
    group.streams.push_back({bytes, least(kind.hosts, rate)});
  };
  const auto speed = [&](size_t host) -> const train::HostSpeed& { return job.speed.hosts[host]; };
  const auto count = least(kind.hosts, [&](size_t host) { return speed(host).float32_blocks.size(); });
  for (size_t i = 0; i < count; ++i) add([&](size_t host) { return speed(host).float32_blocks[i].elementwise; });
  for (size_t i = 0; i < speed(kind.hosts[0]).copies.size(); ++i) {
    add([&](size_t host) { return speed(host).copies[i]; });
  }
  group.memory_bytes_per_second = group.streams.back().bytes_per_second;
}

plan::DeviceGroup measured_group(const train::MeasuredJob& job, const MeasuredKind& kind) {
  plan::DeviceGroup group;
  group.name = kind.processor.empty() ? "core" : "core of " + kind.processor;
  group.per_node = kind.per_node;
  group.nodes = static_cast<int>(kind.hosts.size());
  group.memory_bytes =
      least(kind.hosts, [&](size_t host) { return job.hosts[host].facts.memory_bytes; }) / kind.per_node;
  add_streams(job, kind, group);
  group.shared_cores = true;
  group.bfloat16_products =
      std::ranges::all_of(kind.hosts, [&](size_t host) { return job.speed.hosts[host].bfloat16_products; });
  for (const size_t host : kind.hosts) group.skew = std::max(group.skew, job.speed.hosts[host].skew);
  for (const TypeSpeeds& type : kTypes) add_rates(type, job, kind, group);
  return group;
}

plan::Link measured_link(const train::LinkSummary& links) { return {links.bytes_per_second, links.latency_seconds}; }

}  // namespace

plan::Cluster measured_cluster(const train::MeasuredJob& job) {
  plan::Cluster cluster;
  std::vector<std::string> names;
  std::vector<size_t> with_disk;
  for (size_t host = 0; host < job.hosts.size(); ++host) {
    names.push_back(job.hosts[host].facts.host);
    if (job.speed.hosts[host].disk.fault.empty()) with_disk.push_back(host);
  }
  cluster.name = joined(names);
  for (const MeasuredKind& kind : measured_kinds(job)) cluster.devices.push_back(measured_group(job, kind));
  cluster.node = measured_link(train::summary(job, train::LinkSpan::OneHost));
  cluster.network = measured_link(train::summary(job, train::LinkSpan::AcrossHosts));
  cluster.rates = plan::RatesFrom::Measured;
  for (const train::SumSpeed& sum : job.speed.sums) {
    if (sum.ranks < 2) continue;
    cluster.all_reduces.push_back({sum.ranks, sum.per_host, static_cast<double>(sum.bytes), sum.seconds});
  }
  std::ranges::sort(cluster.all_reduces, {},
                    [](const plan::AllReduceTime& row) { return std::tuple(row.ranks, row.per_node, row.bytes); });
  if (with_disk.empty()) return cluster;
  const auto disk = [&](size_t host) -> const train::DiskSpeed& { return job.speed.hosts[host].disk; };
  cluster.disk = {least(with_disk, [&](size_t host) { return disk(host).read_bytes_per_second; }),
                  least(with_disk, [&](size_t host) { return disk(host).write_bytes_per_second; }),
                  job.speed.save_seconds};
  return cluster;
}

std::string measured_cluster_text(const train::MeasuredJob& job) {
  return cat("# Measured by ", job.hosts[0].version, ". Rates in GB/s are 1e9 bytes.\n",
             plan::cluster_text(measured_cluster(job)));
}

}  // namespace braid::cli
