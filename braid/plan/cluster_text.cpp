// The inverse of cluster_file.h: writes a cluster's numbers in the units of its file.
#include "braid/base/text.h"
#include "braid/plan/cluster.h"
#include "braid/plan/cluster_file.h"
#include "braid/spec/fields.h"

namespace braid::plan {
namespace {

std::string in_unit(double value, double unit) { return exact(value / unit); }

std::string type_text(DType type) { return spec::toml_text(std::string(word(type))); }

std::string list_text(const char* key, const std::string& rows) {
  return rows.empty() ? "" : cat(key, " = [\n", rows, "]\n");
}

std::string reserve_text(const Reserve& reserve) {
  if (reserve.total() == 0) return "";
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : kReserveParts) parts.push_back(cat(name, " = ", in_unit(reserve.*bytes, kGib)));
  return cat("\nreserve_gib = { ", joined(parts), " }");
}

std::string device_text(const DeviceGroup& group) {
  std::vector<std::string> peaks;
  for (const PeakRate& peak : group.peaks) peaks.push_back(cat(word(peak.type), " = ", in_unit(peak.flops, kTera)));
  std::string text =
      cat("\n[[devices]]\nname = ", spec::toml_text(group.name), "\nper_node = ", group.per_node,
          "\nnodes = ", group.nodes, "\nmemory_gib = ", in_unit(group.memory_bytes, kGib),
          "\nmemory_gbps = ", in_unit(group.memory_bytes_per_second, kGiga), "\npeak_tflops = { ", joined(peaks), " }",
          reserve_text(group.reserve), "\nshared_cores = ", group.shared_cores ? "true" : "false",
          group.bfloat16_products ? "\nbfloat16_products = true" : "",
          group.skew > 0 ? cat("\nskew = ", exact(group.skew)) : "", "\n");
  std::string shares, attention, streams;
  for (const ProductShare& row : group.shares) {
    shares += cat("  { type = ", type_text(row.type), ", gflop = ", in_unit(row.flops, kGiga),
                  ", share = ", exact(row.share), " },\n");
  }
  for (const AttentionRate& row : group.attention) {
    attention += cat("  { type = ", type_text(row.type), ", context = ", exact(row.context),
                     ", forward_tflops = ", in_unit(row.forward, kTera),
                     ", backward_tflops = ", in_unit(row.backward, kTera), " },\n");
  }
  for (const StreamRate& row : group.streams) {
    streams += cat("  { mib = ", in_unit(row.bytes, kMib), ", gbps = ", in_unit(row.bytes_per_second, kGiga), " },\n");
  }
  return cat(text, list_text("efficiency", shares), list_text("attention", attention), list_text("streams", streams));
}

std::string link_text(const char* name, const char* rate, const Link& link) {
  if (link.bytes_per_second == 0) return "";
  return cat("\n[", name, "]\n", rate, " = ", in_unit(link.bytes_per_second, kGiga),
             "\nlatency_us = ", in_unit(link.latency_seconds, kMicro), "\n");
}

std::string all_reduces_text(const std::vector<AllReduceTime>& all) {
  std::string rows;
  for (const AllReduceTime& row : all) {
    rows += cat("  { ranks = ", row.ranks, ", per_node = ", row.per_node, ", mib = ", in_unit(row.bytes, kMib),
                ", us = ", in_unit(row.seconds, kMicro), " },\n");
  }
  return list_text("all_reduce", rows);
}

}  // namespace

std::string cluster_text(const Cluster& cluster) {
  std::string text = cat("name = ", spec::toml_text(cluster.name), "\nnodes = ", cluster.num_nodes(),
                         "\nrates = ", spec::toml_text(std::string(word(cluster.rates))), "\n");
  text += all_reduces_text(cluster.all_reduces);
  for (const DeviceGroup& group : cluster.devices) text += device_text(group);
  text += link_text("node", "link_gbps", cluster.node) + link_text("network", "gbps", cluster.network);
  if (cluster.host.bytes > 0) {
    text += cat("\n[host]\nmemory_gib = ", in_unit(cluster.host.bytes, kGib),
                "\nlink_gbps = ", in_unit(cluster.host.bytes_per_second, kGiga), "\n");
  }
  if (cluster.disk.read_bytes_per_second > 0) {
    text += cat("\n[disk]\nread_gbps = ", in_unit(cluster.disk.read_bytes_per_second, kGiga),
                "\nwrite_gbps = ", in_unit(cluster.disk.write_bytes_per_second, kGiga),
                cluster.disk.save_seconds > 0 ? cat("\nsave_seconds = ", exact(cluster.disk.save_seconds)) : "", "\n");
  }
  if (cluster.failures.mtbf_seconds_per_device > 0) {
    text += cat("\n[failures]\nmtbf_hours_per_device = ", in_unit(cluster.failures.mtbf_seconds_per_device, kHour),
                "\nrestart_seconds = ", exact(cluster.failures.restart_seconds), "\n");
  }
  return text;
}

}  // namespace braid::plan
