// The measurements that ranks make in their processes, and the checks of their results.
#include "braid/train/measure_job.h"

#include <algorithm>
#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/median.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/comm/op_name.h"
#include "braid/nn/kernels/product_bf16.h"

namespace braid::train {
namespace {

constexpr double kMuchSlower = 10;         // times slower than the median
constexpr double kClocksApart = 1;         // seconds that clocks may differ without a note
constexpr int64_t kOpenFilesOfAny = 256;   // of any rank, beside its connections
constexpr int64_t kConnectionsOfPair = 2;  // of a rank, with each other rank

struct MeasuredRank {
  std::vector<LinkSpeed> links;
  std::vector<SumSpeed> sums;
  std::vector<ClockDifference> clocks;
  HostSpeed host;
  double save_seconds = 0;
};
template <class Pack>
void members(Pack& pack, MeasuredRank& rank) {
  pack(rank.links, rank.sums, rank.clocks, rank.host, rank.save_seconds);
}

// Returns a run whose block represents those of tensor ranks.
RunSpec tensor_run() {
  RunSpec spec;
  spec.train.microbatch = 2;
  spec.model.context = 256;
  spec.model.heads = 4;
  spec.model.width = 256;
  spec.mesh.tensor = 2;
  return spec;
}

void measure_cluster_rates(HostSpeed& speed, Communicator& host) {
  speed.float32_blocks = measured_blocks(DType::Float32, at::kCPU, host);
  speed.bfloat16_blocks = measured_blocks(DType::BFloat16, at::kCPU, host);
  if (host.size() > 1) speed.skew = measured_skew(tensor_run(), at::kCPU, host);
}

MeasuredRank measured_rank(Communicator& world, const std::vector<int>& host_of_rank, const std::string& folder,
                           ClusterRates rates) {
  const comm::CallName name("rates of the machine");
  MeasuredRank rank;
  rank.links = measured_links(world, host_of_rank);
  rank.sums = measured_sums(world, host_of_rank);
  rank.clocks = measured_clocks(world, host_of_rank);
  const auto host = world.split(host_of_rank[static_cast<size_t>(world.rank())], world.rank(), "host");
  rank.host.copies = measured_copies(at::kCPU, *host);
  rank.host.float32_flops = measured_peak(at::kFloat, at::kCPU, *host).per_rank;
  rank.host.bfloat16_flops = measured_peak(at::kBFloat16, at::kCPU, *host).per_rank;
  rank.host.bfloat16_products = kernels::has_product_bf16();
  if (comm::agree_any(world, "rates for a cluster file", rates == ClusterRates::Measured)) {
    measure_cluster_rates(rank.host, *host);
  }
  if (host->rank() == 0) rank.host.disk = measured_disk(folder);
  host->barrier().wait_host();  // no rank works while the disk is measured
  rank.save_seconds = measured_save(folder, world);
  return rank;
}

std::string link_text(const MeasuredJob& job, const LinkSpeed& link) {
  return cat(job.place(link.first), " and ", job.place(link.second), ": ", fixed(1e6 * link.latency_seconds, 1),
             " us, ", fixed(link.bytes_per_second / 1e9, 2), " GB/s");
}

void note_slow_links(const MeasuredJob& job, LinkSpan span, std::vector<std::string>& notes) {
  const LinkSummary all = summary(job, span);
  for (const LinkSpeed& link : job.speed.links) {
    if (job.one_host(link) != (span == LinkSpan::OneHost)) continue;
    if (link.latency_seconds < kMuchSlower * all.latency_seconds &&
        link.bytes_per_second * kMuchSlower > all.bytes_per_second) {
      continue;
    }
    notes.push_back(cat(link_text(job, link), ": ten times slower than the median of ", all.count, " pairs (",
                        fixed(1e6 * all.latency_seconds, 1), " us, ", fixed(all.bytes_per_second / 1e9, 2), " GB/s)"));
  }
}

void note_host(const MeasuredJob& job, size_t number, std::vector<std::string>& notes) {
  const JobHost& host = job.hosts[number];
  const std::string& name = host.facts.host;
  const auto num_ranks = static_cast<int64_t>(job.host_of_rank.size());
  const int64_t open_files = kOpenFilesOfAny + kConnectionsOfPair * num_ranks;
  if (host.facts.open_files >= 0 && host.facts.open_files < open_files) {
    notes.push_back(cat(name, ": a process may open ", counted(host.facts.open_files, "file"), ", and a rank of ",
                        num_ranks, " may need ", open_files, ": ulimit -n ", open_files));
  }
  if (!host.unbind.empty() && host.facts.cores < host.facts.host_cores) {
    notes.push_back(cat(name, ": the launcher has bound a rank to ", host.facts.cores, " of ", host.facts.host_cores,
                        " cores: ", host.unbind));
  } else if (host.num_ranks > host.facts.cores) {
    notes.push_back(cat(name, ": ", counted(host.num_ranks, "rank"), " share ", counted(host.facts.cores, "core"),
                        ", and wait for each other"));
  }
  const std::string& fault = job.speed.hosts[number].disk.fault;
  if (!fault.empty()) notes.push_back(cat(name, ": the disk was not measured: ", fault));
}

bool has_products_like(const std::vector<BlockSpeed>& blocks, const std::vector<BlockSpeed>& others) {
  return std::ranges::all_of(blocks, [&](const BlockSpeed& block) {
    return others.empty() || block.products.size() == others[0].products.size();
  });
}

// Throws CommError if a rank's results are not comparable: later code looks ranks up, and compares hosts number by
// number.
void require_comparable(const std::vector<MeasuredRank>& ranks) {
  const auto is_rank = [&](int rank) { return 0 <= rank && rank < static_cast<int>(ranks.size()); };
  const HostSpeed& first = ranks[0].host;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& [links, sums, clocks, host, save_seconds] = ranks[rank];
    bool comparable = !host.copies.empty() && host.copies.size() == first.copies.size() &&
                      has_products_like(host.float32_blocks, first.float32_blocks) &&
                      has_products_like(host.bfloat16_blocks, first.bfloat16_blocks);
    for (const LinkSpeed& link : links) comparable = comparable && is_rank(link.first) && is_rank(link.second);
    for (const SumSpeed& sum : sums) comparable = comparable && sum.bytes > 0 && sum.ranks >= sum.per_host;
    for (const ClockDifference& clock : clocks) comparable = comparable && is_rank(clock.rank);
    if (!comparable) throw CommError({"measuring a job", static_cast<int>(rank), 0, "has measured what cannot be"});
  }
}

}  // namespace

JobSpeed measure_job(const Launcher& start, const std::vector<int>& host_of_rank, const std::string& folder,
                     ClusterRates rates) {
  const auto body = [&](Communicator& world) { return measured_rank(world, host_of_rank, folder, rates); };
  const auto ranks =
      values_by_rank(start, static_cast<int>(host_of_rank.size()), body,
                     {.threads_per_rank = 1, .signals = SignalsTo::Caller, .sums = comm::ReductionOrder::Measured});
  require_comparable(ranks);
  JobSpeed speed;
  speed.sums = ranks[0].sums;
  speed.clocks = ranks[0].clocks;
  speed.save_seconds = ranks[0].save_seconds;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    speed.links.insert(speed.links.end(), ranks[rank].links.begin(), ranks[rank].links.end());
    const auto host = static_cast<size_t>(host_of_rank[rank]);
    const bool first_of_host =
        std::ranges::find(host_of_rank, host_of_rank[rank]) == host_of_rank.begin() + static_cast<int64_t>(rank);
    if (host >= speed.hosts.size()) speed.hosts.resize(host + 1);
    if (first_of_host) speed.hosts[host] = ranks[rank].host;
  }
  std::ranges::sort(speed.links, {}, [](const LinkSpeed& link) { return std::pair(link.first, link.second); });
  return speed;
}

bool MeasuredJob::one_host(const LinkSpeed& link) const {
  return host_of_rank[static_cast<size_t>(link.first)] == host_of_rank[static_cast<size_t>(link.second)];
}

std::string MeasuredJob::place(int rank) const {
  return cat("rank ", rank, " on ", hosts[static_cast<size_t>(host_of_rank[static_cast<size_t>(rank)])].facts.host);
}

LinkSummary summary(const MeasuredJob& job, LinkSpan span) {
  LinkSummary all;
  std::vector<double> latencies, rates;
  for (const LinkSpeed& link : job.speed.links) {
    if (job.one_host(link) != (span == LinkSpan::OneHost)) continue;
    if (all.count++ == 0 || link.bytes_per_second < all.slowest.bytes_per_second) all.slowest = link;
    latencies.push_back(link.latency_seconds);
    rates.push_back(link.bytes_per_second);
  }
  if (all.count == 0) return all;
  all.latency_seconds = median(latencies);
  all.bytes_per_second = median(rates);
  return all;
}

std::vector<std::string> job_notes(const MeasuredJob& job) {
  std::vector<std::string> notes;
  for (size_t number = 0; number < job.hosts.size(); ++number) note_host(job, number, notes);
  note_slow_links(job, LinkSpan::OneHost, notes);
  note_slow_links(job, LinkSpan::AcrossHosts, notes);
  for (const ClockDifference& clock : job.speed.clocks) {
    if (std::abs(clock.wall_seconds) < kClocksApart) continue;
    notes.push_back(cat(
        "the clock of ", job.hosts[static_cast<size_t>(job.host_of_rank[static_cast<size_t>(clock.rank)])].facts.host,
        " is ", fixed(std::abs(clock.wall_seconds), 1), " s ", clock.wall_seconds > 0 ? "ahead of" : "behind",
        " that of ", job.hosts[0].facts.host, ": times in files of the two do not compare"));
  }
  return notes;
}

}  // namespace braid::train
