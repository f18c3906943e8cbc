// Everything that is measured of a host or a job by its ranks, and what of it looks wrong. It prints nothing; hosts are
// numbers, and names where there is something to say.
#pragma once

#include <string>
#include <vector>

#include "braid/base/host_facts.h"
#include "braid/launch/launcher.h"
#include "braid/train/host_probe.h"
#include "braid/train/kernel_probe.h"
#include "braid/train/link_probe.h"
#include "braid/train/peak_probe.h"

namespace braid::train {

// The rates of one host with all its ranks computing at once, each with one thread; per rank.
struct HostSpeed {
  std::vector<CopySpeed> copies;
  double float32_flops = 0, bfloat16_flops = 0;
  std::vector<BlockSpeed> float32_blocks, bfloat16_blocks;
  double skew = 0;  // of tensor ranks; 0 of one rank
  bool bfloat16_products = false;
  DiskSpeed disk;
};
template <class Pack>
void members(Pack& pack, HostSpeed& speed) {
  pack(speed.copies, speed.float32_flops, speed.bfloat16_flops, speed.float32_blocks, speed.bfloat16_blocks, speed.skew,
       speed.bfloat16_products, speed.disk);
}

struct JobSpeed {
  std::vector<LinkSpeed> links;  // by first rank, then by second
  std::vector<SumSpeed> sums;
  std::vector<ClockDifference> clocks;
  std::vector<HostSpeed> hosts;  // by number
  double save_seconds = 0;       // of a save that writes next to nothing (measured_save()); 0: not measured
};

// Runs ranks with `start`, one for each of `host_of_rank`, and measures one thing after another. `folder` is where each
// host's disk is measured. Throws what Launcher::run() throws.
JobSpeed measure_job(const Launcher& start, const std::vector<int>& host_of_rank, const std::string& folder);

// A host's facts about itself.
struct JobHost {
  HostFacts facts;
  std::string version;          // of braid and its engines
  int num_ranks = 0;            // that are measured on it
  int64_t free_disk_bytes = 0;  // where its disk is measured
};
template <class Pack>
void members(Pack& pack, JobHost& host) {
  pack(host.facts, host.version, host.num_ranks, host.free_disk_bytes);
}

struct MeasuredJob {
  std::vector<JobHost> hosts;
  std::vector<int> host_of_rank;
  JobSpeed speed;

  bool one_host(const LinkSpeed& link) const;  // both its ranks are on the same
  // "rank 0 on h0".
  std::string place(int rank) const;
};

// Summary of links inside or across hosts: medians, and the slowest link for large messages.
struct LinkSummary {
  int count = 0;
  double latency_seconds = 0, bytes_per_second = 0;
  LinkSpeed slowest;
};
enum class LinkSpan { OneHost, AcrossHosts };
LinkSummary summary(const MeasuredJob& job, LinkSpan span);

// Sentences about limits that are too low, pairs ten times slower than the median of their kind,
// clocks apart, more ranks than cores, disks that could not be measured.
std::vector<std::string> job_notes(const MeasuredJob& job);

}  // namespace braid::train
