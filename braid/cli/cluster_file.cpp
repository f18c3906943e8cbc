// Kinds of devices, and the least of each.
#include "braid/cli/cluster_file.h"

#include <algorithm>
#include <limits>

#include "braid/base/text.h"
#include "braid/spec/fields.h"

namespace braid {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kGib = 1 << 30;

// Hosts that a planner need not tell apart.
struct MeasuredKind {
  std::string processor;
  int per_node = 0;
  std::vector<size_t> hosts;
};

std::vector<MeasuredKind> measured_kinds(const MeasuredJob& job) {
  std::vector<MeasuredKind> all;
  for (size_t number = 0; number < job.hosts.size(); ++number) {
    const JobHost& host = job.hosts[number];
    auto kind = std::ranges::find_if(all, [&](const MeasuredKind& known) {
      return known.processor == host.facts.processor && known.per_node == host.num_ranks;
    });
    if (kind == all.end()) kind = all.insert(kind, {host.facts.processor, host.num_ranks, {}});
    kind->hosts.push_back(number);
  }
  return all;
}

// The least that any of the hosts has.
template <class Amount>
std::string least(const std::vector<size_t>& hosts, const Amount& amount) {
  double found = std::numeric_limits<double>::infinity();
  for (const size_t host : hosts) found = std::min(found, amount(host));
  return fixed(found, 3);
}

std::string kind_text(const MeasuredJob& job, const MeasuredKind& kind) {
  const auto speed = [&](size_t host) -> const HostSpeed& { return job.speed.hosts[host]; };
  const std::string memory = least(kind.hosts, [&](size_t host) {
    return static_cast<double>(job.hosts[host].facts.memory_bytes) / kGib / kind.per_node;
  });
  const std::string copy = least(kind.hosts, [&](size_t host) { return speed(host).copy_bytes_per_second / kGiga; });
  const std::string narrow = least(kind.hosts, [&](size_t host) { return speed(host).bfloat16_flops / kTera; });
  const std::string wide = least(kind.hosts, [&](size_t host) { return speed(host).float32_flops / kTera; });
  const std::string name = kind.processor.empty() ? "core" : "core of " + kind.processor;
  return cat("\n[[devices]]\nname = ", toml_text(name), "\nper_node = ", kind.per_node, "\nnodes = ", kind.hosts.size(),
             "\nmemory_gib = ", memory, "\nmemory_gbps = ", copy, "\npeak_tflops = { bfloat16 = ", narrow,
             ", float32 = ", wide, " }\nshared_cores = true\n");
}

std::string link_table_text(const std::string& table, const std::string& rate, const LinkSummary& links) {
  if (links.count == 0) return "";
  return cat("\n[", table, "]\n", rate, " = ", fixed(links.bytes_per_second / kGiga, 3),
             "\nlatency_us = ", fixed(1e6 * links.latency_seconds, 3), "\n");
}

std::string disk_text(const MeasuredJob& job) {
  std::vector<size_t> measured;
  for (size_t host = 0; host < job.hosts.size(); ++host) {
    if (job.speed.hosts[host].disk.fault.empty()) measured.push_back(host);
  }
  if (measured.empty()) return "";
  const auto disk = [&](size_t host) -> const DiskSpeed& { return job.speed.hosts[host].disk; };
  return cat(
      "\n[disk]\nread_gbps = ", least(measured, [&](size_t host) { return disk(host).read_bytes_per_second / kGiga; }),
      "\nwrite_gbps = ", least(measured, [&](size_t host) { return disk(host).write_bytes_per_second / kGiga; }), "\n");
}

}  // namespace

std::string cluster_file_text(const MeasuredJob& job) {
  std::vector<std::string> names;
  for (const JobHost& host : job.hosts) names.push_back(host.facts.host);
  std::string text =
      cat("# Measured by braid doctor, ", job.hosts[0].version,
          ". Rates in GB/s are 1e9 bytes.\nname = ", toml_text(joined(names)), "\nnodes = ", job.hosts.size(), "\n");
  for (const MeasuredKind& kind : measured_kinds(job)) text += kind_text(job, kind);
  text += link_table_text("node", "link_gbps", summary(job, LinkSpan::OneHost));
  text += link_table_text("network", "gbps", summary(job, LinkSpan::AcrossHosts));
  return text + disk_text(job);
}

}  // namespace braid
