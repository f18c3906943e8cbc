// All measurements that ranks make of their hosts or of a job, and notes on results that look wrong. Prints nothing.
// Hosts are numbers in results and names in notes.
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

// The rates per rank of one host, while all its ranks compute at the same time, each with one thread.
struct HostSpeed {
  std::vector<CopySpeed> copies;
  double float32_flops = 0, bfloat16_flops = 0;
  std::vector<BlockSpeed> float32_blocks, bfloat16_blocks;
  double skew = 0;  // BlockSeconds::skew() of tensor ranks; 0 if the host has one rank
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
  std::vector<HostSpeed> hosts;  // by number of the host
  double save_seconds = 0;       // time of a save of almost nothing (measured_save()); 0: not measured
};

// The measurements that only a description of the cluster needs: blocks, skew.
enum class ClusterRates { Skipped, Measured };

// Runs ranks with `start`, one for each entry of `host_of_rank`, and makes all measurements one after another. Each
// host's disk is measured in `folder`. All hosts measure `rates` if any of them asks for it. Throws as Launcher::run()
// does.
JobSpeed measure_job(const Launcher& start, const std::vector<int>& host_of_rank, const std::string& folder,
                     ClusterRates rates = ClusterRates::Measured);

// Facts that a host reports about itself.
struct JobHost {
  HostFacts facts;
  std::string version;          // version of braid and of its engines
  int num_ranks = 0;            // number of measured ranks on this host
  int64_t free_disk_bytes = 0;  // in the folder where its disk is measured
  std::string unbind;           // option of its launcher that binds no rank to cores: "srun --cpu-bind=none"; or empty
};
template <class Pack>
void members(Pack& pack, JobHost& host) {
  pack(host.facts, host.version, host.num_ranks, host.free_disk_bytes, host.unbind);
}

struct MeasuredJob {
  std::vector<JobHost> hosts;
  std::vector<int> host_of_rank;
  JobSpeed speed;

  bool one_host(const LinkSpeed& link) const;  // true if both ranks of the link are on the same host
  // Returns "rank 0 on h0".
  std::string place(int rank) const;
};

// Summary of links inside or across hosts: medians, and the link with the lowest bandwidth.
struct LinkSummary {
  int count = 0;
  double latency_seconds = 0, bytes_per_second = 0;
  LinkSpeed slowest;
};
enum class LinkSpan { OneHost, AcrossHosts };
LinkSummary summary(const MeasuredJob& job, LinkSpan span);

// Returns sentences about results that look wrong: open-file limits that are too low, more ranks than cores, pairs ten
// times slower than the median of their kind, clocks that differ by a second or more, disks that were not measured.
std::vector<std::string> job_notes(const MeasuredJob& job);

}  // namespace braid::train
