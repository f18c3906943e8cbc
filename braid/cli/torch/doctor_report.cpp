// Formats the measurements of braid doctor as lines and as JSON.
#include "braid/cli/torch/doctor_report.h"

#include <nlohmann/json.hpp>

#include "braid/base/text.h"
#include "braid/report/markup.h"

namespace braid::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string report_line(const std::string& title, const std::string& text) {
  return title + std::string(title.size() < 10 ? 10 - title.size() : 1, ' ') + text + "\n";
}

std::string limit_text(int64_t bytes) { return bytes < 0 ? "no limit" : human_bytes(static_cast<double>(bytes)); }
std::string rate_text(double bytes_per_second) { return fixed(bytes_per_second / 1e9, 2) + " GB/s"; }
std::string microseconds_text(double seconds) { return fixed(1e6 * seconds, 1) + " us"; }

std::string interface_text(const HostInterface& interface) {
  const int64_t speed = interface.megabits_per_second;
  const std::string name = speed > 0 ? cat(interface.name, " (", speed, " Mbit/s)") : interface.name;
  return cat(name, " ", joined(interface.addresses, " "));
}

std::string cores_text(const HostFacts& facts) {
  if (facts.cores == facts.host_cores) return counted(facts.cores, "core");
  return cat(facts.cores, " of ", counted(facts.host_cores, "core"));
}

std::string host_text(const train::JobHost& host) {
  const HostFacts& facts = host.facts;
  std::vector<std::string> interfaces;
  for (const HostInterface& interface : facts.interfaces) interfaces.push_back(interface_text(interface));
  const std::string files = facts.open_files < 0 ? "no limit" : cat(facts.open_files);
  return report_line("host",
                     cat(facts.host, ": ", cores_text(facts), facts.processor.empty() ? "" : " of " + facts.processor,
                         ", memory ", limit_text(facts.memory_bytes), ", free ", limit_text(facts.free_memory_bytes),
                         "; disk free ", limit_text(host.free_disk_bytes))) +
         report_line("", joined(interfaces, "; ")) +
         report_line("", cat("limits: open files ", files, ", locked memory ", limit_text(facts.locked_bytes),
                             "; /dev/shm ", limit_text(facts.shared_memory_bytes))) +
         report_line("", cat(host.version, "; ", counted(host.num_ranks, "rank")));
}

std::string pair_text(const train::MeasuredJob& job, train::LinkSpan span) {
  const train::LinkSummary all = train::summary(job, span);
  if (all.count == 0) return "";
  const std::string where = span == train::LinkSpan::OneHost ? " in a host" : " across hosts";
  return report_line("pairs", cat(all.count, where, ": median ", microseconds_text(all.latency_seconds), ", ",
                                  rate_text(all.bytes_per_second)));
}

std::string slowest_text(const train::MeasuredJob& job) {
  const train::LinkSummary near = train::summary(job, train::LinkSpan::OneHost),
                           far = train::summary(job, train::LinkSpan::AcrossHosts);
  if (near.count + far.count < 2) return "";
  const bool is_far =
      near.count == 0 || (far.count > 0 && far.slowest.bytes_per_second < near.slowest.bytes_per_second);
  const train::LinkSpeed& slowest = is_far ? far.slowest : near.slowest;
  return report_line("slowest",
                     cat(job.place(slowest.first), " and ", job.place(slowest.second), ": ",
                         microseconds_text(slowest.latency_seconds), ", ", rate_text(slowest.bytes_per_second)));
}

std::string group_text(const train::SumSpeed& sum) {
  if (sum.per_host == sum.ranks) return counted(sum.ranks, "rank");
  return cat(counted(sum.ranks, "rank"), " on ", counted(sum.ranks / sum.per_host, "host"));
}

// Returns a line of all-reduce times for each group of ranks.
std::string sums_text(const train::MeasuredJob& job) {
  std::string text, sizes;
  const std::vector<train::SumSpeed>& sums = job.speed.sums;
  for (size_t i = 0; i < sums.size() && job.host_of_rank.size() > 1; ++i) {
    sizes += cat(sizes.empty() ? "" : ", ", human_bytes(static_cast<double>(sums[i].bytes)), " ",
                 microseconds_text(sums[i].seconds));
    const bool is_last = i + 1 == sums.size() || group_text(sums[i + 1]) != group_text(sums[i]);
    if (!is_last) continue;
    text += report_line("sum", cat("all-reduce over ", group_text(sums[i]), ": ", sizes));
    sizes.clear();
  }
  return text;
}

std::string save_text(const train::MeasuredJob& job) {
  if (job.speed.save_seconds == 0) return "";
  return report_line("save", cat("at least ", fixed(1e3 * job.speed.save_seconds, 1),
                                 " ms, however little is written: files, agreement, a new name"));
}

std::string speed_text(const train::JobHost& host, const train::HostSpeed& speed) {
  const train::DiskSpeed& disk = speed.disk;
  std::string text =
      cat(host.facts.host, ", each of ", host.num_ranks, " at once: copies ",
          rate_text(speed.copies.back().bytes_per_second), ", products ", report::flops_text(speed.float32_flops),
          " float32, ", report::flops_text(speed.bfloat16_flops), " bfloat16");
  if (disk.fault.empty()) {
    text += cat("; disk writes ", rate_text(disk.write_bytes_per_second), ", reads ",
                rate_text(disk.read_bytes_per_second));
  }
  return report_line("speed", text);
}

std::string clock_text(const train::MeasuredJob& job, const train::ClockDifference& clock) {
  return report_line("clock", cat(job.place(clock.rank), " is ", fixed(1e3 * clock.wall_seconds, 3),
                                  " ms ahead of rank 0's (+-", fixed(1e3 * clock.within_seconds, 3), " ms)"));
}

Json host_json(const train::JobHost& host, const train::HostSpeed& speed) {
  const HostFacts& facts = host.facts;
  Json interfaces = Json::array();
  for (const HostInterface& interface : facts.interfaces) {
    interfaces.push_back({{"name", interface.name},
                          {"addresses", interface.addresses},
                          {"megabits_per_second", interface.megabits_per_second}});
  }
  return {{"host", facts.host},
          {"version", host.version},
          {"processor", facts.processor},
          {"cores", facts.cores},
          {"host_cores", facts.host_cores},
          {"ranks", host.num_ranks},
          {"memory_bytes", facts.memory_bytes},
          {"free_memory_bytes", facts.free_memory_bytes},
          {"shared_memory_bytes", facts.shared_memory_bytes},
          {"free_disk_bytes", host.free_disk_bytes},
          {"open_files", facts.open_files},
          {"most_open_files", facts.most_open_files},
          {"locked_bytes", facts.locked_bytes},
          {"most_locked_bytes", facts.most_locked_bytes},
          {"interfaces", interfaces},
          {"copy_bytes_per_second", speed.copies.back().bytes_per_second},
          {"float32_flops", speed.float32_flops},
          {"bfloat16_flops", speed.bfloat16_flops},
          {"disk_write_bytes_per_second", speed.disk.write_bytes_per_second},
          {"disk_read_bytes_per_second", speed.disk.read_bytes_per_second}};
}

}  // namespace

std::string doctor_text(const train::MeasuredJob& job) {
  std::string text;
  for (const train::JobHost& host : job.hosts) text += host_text(host);
  text += pair_text(job, train::LinkSpan::OneHost) + pair_text(job, train::LinkSpan::AcrossHosts) + slowest_text(job) +
          sums_text(job);
  for (size_t host = 0; host < job.hosts.size(); ++host) text += speed_text(job.hosts[host], job.speed.hosts[host]);
  text += save_text(job);
  for (const train::ClockDifference& clock : job.speed.clocks) text += clock_text(job, clock);
  for (const std::string& note : train::job_notes(job)) text += report_line("note", note);
  return text;
}

std::string doctor_json(const train::MeasuredJob& job) {
  Json json{{"hosts", Json::array()}, {"host_of_rank", job.host_of_rank}, {"links", Json::array()},
            {"sums", Json::array()},  {"clocks", Json::array()},          {"notes", train::job_notes(job)}};
  for (size_t host = 0; host < job.hosts.size(); ++host) {
    json["hosts"].push_back(host_json(job.hosts[host], job.speed.hosts[host]));
  }
  for (const train::LinkSpeed& link : job.speed.links) {
    json["links"].push_back({{"ranks", {link.first, link.second}},
                             {"latency_seconds", link.latency_seconds},
                             {"bytes_per_second", link.bytes_per_second}});
  }
  for (const train::SumSpeed& sum : job.speed.sums)
    json["sums"].push_back(
        {{"ranks", sum.ranks}, {"ranks_per_host", sum.per_host}, {"bytes", sum.bytes}, {"seconds", sum.seconds}});
  json["save_seconds"] = job.speed.save_seconds;
  for (const train::ClockDifference& clock : job.speed.clocks) {
    json["clocks"].push_back({{"rank", clock.rank},
                              {"wall_seconds", clock.wall_seconds},
                              {"monotonic_seconds", clock.monotonic_seconds},
                              {"within_seconds", clock.within_seconds}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace braid::cli
