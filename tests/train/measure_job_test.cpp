// Measurements between ranks, on threads; and findings about made-up numbers. Times themselves are
// not looked at.
#include "braid/train/measure_job.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <numeric>
#include <set>

#include "braid/base/text.h"
#include "tests/support/scratch_folder.h"

namespace braid::train::measure_job_test {
namespace {

using Pair = std::pair<int, int>;

std::set<Pair> pairs_of(const std::vector<std::vector<LinkSpeed>>& rounds) {
  std::set<Pair> pairs;
  for (const auto& round : rounds) {
    for (const LinkSpeed& pair : round) {
      EXPECT_LT(pair.first, pair.second);
      EXPECT_TRUE(pairs.insert({pair.first, pair.second}).second) << pair.first << " " << pair.second;
    }
  }
  return pairs;
}

// So many hosts with so many ranks each.
std::vector<int> hosts_with(int num_hosts, int ranks_each) {
  std::vector<int> host_of_rank;
  for (int rank = 0; rank < num_hosts * ranks_each; ++rank) host_of_rank.push_back(rank / ranks_each);
  return host_of_rank;
}

TEST(RoundsOfPairs, no_two_of_a_round_share_a_host) {
  for (const auto& host_of_rank :
       {hosts_with(1, 4), hosts_with(4, 1), hosts_with(3, 3), hosts_with(5, 8), std::vector<int>{0, 1, 0, 1, 2}}) {
    for (const auto& round : rounds_of_pairs(host_of_rank)) {
      std::multiset<int> hosts;
      for (const LinkSpeed& pair : round) {
        const int a = host_of_rank[static_cast<size_t>(pair.first)], b = host_of_rank[static_cast<size_t>(pair.second)];
        hosts.insert(a);
        if (a != b) hosts.insert(b);
      }
      for (const int host : hosts) EXPECT_EQ(hosts.count(host), 1u);
    }
  }
}

TEST(RoundsOfPairs, all_of_a_few_ranks) {
  EXPECT_EQ(pairs_of(rounds_of_pairs({0})), std::set<Pair>());
  EXPECT_EQ(pairs_of(rounds_of_pairs({0, 0, 1})), (std::set<Pair>{{0, 1}, {0, 2}, {1, 2}}));
  EXPECT_EQ(pairs_of(rounds_of_pairs(hosts_with(2, 8))).size(), 16u * 15 / 2);
  EXPECT_EQ(rounds_of_pairs(hosts_with(4, 1)).size(), 3u);  // as a tournament of four
}

TEST(RoundsOfPairs, of_many_ranks_every_pair_of_hosts_once_and_neighbours) {
  constexpr int kHosts = 5, kEach = 4;
  const auto pairs = pairs_of(rounds_of_pairs(hosts_with(kHosts, kEach)));
  EXPECT_EQ(pairs.size(), static_cast<size_t>(kHosts * (kHosts - 1) / 2 + kHosts * (kEach - 1)));
  std::set<Pair> hosts;
  std::set<int> ranks_across;
  for (const auto& [a, b] : pairs) {
    if (a / kEach == b / kEach) {
      EXPECT_EQ(b, a + 1);
    } else {
      hosts.insert({a / kEach, b / kEach});
      ranks_across.insert({a, b});
    }
  }
  EXPECT_EQ(hosts.size(), static_cast<size_t>(kHosts * (kHosts - 1) / 2));
  EXPECT_GT(ranks_across.size(), static_cast<size_t>(kHosts));  // not always the first of each
}

class MeasureJob : public ScratchFolder {};

TEST_F(MeasureJob, of_three_ranks_on_two_hosts) {
  const JobSpeed speed = measure_job(launcher({.ranks = RanksAs::Threads}), {0, 0, 1}, folder_);
  ASSERT_EQ(speed.links.size(), 3u);
  const std::vector<Pair> expected{{0, 1}, {0, 2}, {1, 2}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(Pair(speed.links[i].first, speed.links[i].second), expected[i]);
    EXPECT_GT(speed.links[i].latency_seconds, 0);
    EXPECT_GT(speed.links[i].bytes_per_second, 0);
  }
  EXPECT_GT(speed.save_seconds, 0);
  ASSERT_FALSE(speed.sums.empty());
  EXPECT_EQ(std::pair(speed.sums[0].ranks, speed.sums[0].per_host), std::pair(3, 3));  // hosts are unlike
  EXPECT_EQ(speed.sums[0].bytes, 8);
  EXPECT_GT(speed.sums[0].seconds, 0);
  ASSERT_EQ(speed.clocks.size(), 1u);
  EXPECT_EQ(speed.clocks[0].rank, 2);
  // Ranks of one process read one clock.
  EXPECT_LE(std::abs(speed.clocks[0].monotonic_seconds), speed.clocks[0].within_seconds);
  ASSERT_EQ(speed.hosts.size(), 2u);
  EXPECT_EQ(speed.hosts[1].skew, 0);  // alone
  for (const HostSpeed& host : speed.hosts) {
    ASSERT_FALSE(host.copies.empty());
    for (const CopySpeed& copy : host.copies) EXPECT_GT(copy.bytes_per_second, 0);
    for (const auto* blocks : {&host.float32_blocks, &host.bfloat16_blocks}) {
      std::set<double> sizes;  // a cluster file has one row for each
      for (const BlockSpeed& block : *blocks) {
        EXPECT_GT(std::min(block.attention.forward, block.attention.backward), 0);
        EXPECT_GT(block.elementwise.bytes_per_second, 0);
        for (const ProductSpeed& product : block.products) EXPECT_TRUE(sizes.insert(product.flops).second);
      }
      EXPECT_GE(sizes.size(), 3u);
    }
    EXPECT_GT(host.float32_flops, 0);
    EXPECT_GT(host.bfloat16_flops, 0);
    EXPECT_EQ(host.disk.fault, "");
    EXPECT_GT(host.disk.write_bytes_per_second, 0);
    EXPECT_GT(host.disk.read_bytes_per_second, 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(MeasureJob, sums_of_neighbours_of_one_rank_of_each_host_and_of_all) {
  using Group = std::array<int, 2>;
  const auto of_ranks = values_by_rank(launcher({.ranks = RanksAs::Threads}), 4, [](Communicator& world) {
    std::vector<Group> groups;
    for (const SumSpeed& sum : measured_sums(world, {0, 0, 1, 1})) {
      if (sum.bytes == 8 && sum.seconds > 0) groups.push_back({sum.ranks, sum.per_host});
    }
    return groups;
  });
  for (const auto& groups : of_ranks) EXPECT_EQ(groups, (std::vector<Group>{{2, 2}, {2, 1}, {4, 2}}));
}

TEST_F(MeasureJob, a_rank_alone_whose_folder_is_not_there) {
  const JobSpeed speed = measure_job(launcher({.ranks = RanksAs::Threads}), {0}, path("nowhere"));
  EXPECT_TRUE(speed.links.empty());
  EXPECT_TRUE(speed.clocks.empty());
  EXPECT_EQ(speed.save_seconds, 0);
  EXPECT_NE(speed.hosts.at(0).disk.fault.find("cannot create"), std::string::npos) << speed.hosts[0].disk.fault;
}

// Hosts h0, h1, .. of `host_of_rank` with nothing to complain of.
MeasuredJob sound_job(std::vector<int> host_of_rank) {
  MeasuredJob job;
  job.host_of_rank = std::move(host_of_rank);
  for (int number = 0; number <= job.host_of_rank.back(); ++number) {
    JobHost host;
    host.facts.host = cat("h", number);
    host.facts.cores = 8;
    host.facts.open_files = 1024;
    host.version = "braid 1";
    host.num_ranks = static_cast<int>(std::ranges::count(job.host_of_rank, number));
    job.hosts.push_back(host);
  }
  job.speed.hosts.resize(job.hosts.size());
  for (int a = 0; a < static_cast<int>(job.host_of_rank.size()); ++a) {
    for (int b = a + 1; b < static_cast<int>(job.host_of_rank.size()); ++b) {
      job.speed.links.push_back({a, b, 1e-6, 8e9});
      if (!job.one_host(job.speed.links.back())) job.speed.links.back() = {a, b, 50e-6, 1e9};
    }
  }
  return job;
}

LinkSpeed& link_of(MeasuredJob& job, Pair ranks) {
  return *std::ranges::find_if(job.speed.links, [&](const LinkSpeed& l) { return Pair(l.first, l.second) == ranks; });
}

TEST(JobNotes, a_sound_job_has_none_though_networks_are_slower_than_memory) {
  EXPECT_EQ(job_notes(sound_job({0, 0, 1, 1})), std::vector<std::string>());
}

TEST(JobNotes, a_pair_that_is_ten_times_slower_than_its_kind_is_named) {
  MeasuredJob job = sound_job({0, 0, 1, 1});
  link_of(job, {0, 3}).latency_seconds = 501e-6;
  link_of(job, {1, 2}).bytes_per_second = 0.09e9;
  const auto notes = job_notes(job);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0],
            "rank 0 on h0 and rank 3 on h1: 501.0 us, 1.00 GB/s: ten times slower than the median of 4 pairs "
            "(50.0 us, 1.00 GB/s)");
  EXPECT_NE(notes[1].find("rank 1 on h0 and rank 2 on h1: 50.0 us, 0.09 GB/s"), std::string::npos) << notes[1];
  const LinkSummary across = summary(job, LinkSpan::AcrossHosts), near = summary(job, LinkSpan::OneHost);
  EXPECT_EQ(Pair(across.slowest.first, across.slowest.second), Pair(1, 2));
  EXPECT_EQ(across.count, 4);
  EXPECT_EQ(across.latency_seconds, 50e-6);
  EXPECT_EQ(near.count, 2);
  EXPECT_EQ(near.bytes_per_second, 8e9);
}

TEST(JobNotes, hosts) {
  MeasuredJob job = sound_job({0, 1});
  job.hosts[0].facts.open_files = 100;
  job.hosts[0].num_ranks = 9;
  job.speed.hosts[1].disk.fault = "/x: cannot create: No space left on device";
  job.speed.clocks = {{1, -2.5, 700, 1e-4}};
  EXPECT_EQ(job_notes(job),
            (std::vector<std::string>{
                "h0: a process may open 100 files, and a rank of 2 may need 260: ulimit -n 260",
                "h0: 9 ranks share 8 cores, and wait for each other",
                "h1: the disk was not measured: /x: cannot create: No space left on device",
                "the clock of h1 is 2.5 s behind that of h0: times in files of the two do not compare"}));
}

// Ranks that share the cores to which they are bound would not be helped by fewer ranks.
TEST(JobNotes, a_launcher_that_binds_ranks_to_cores_is_noted) {
  MeasuredJob job = sound_job({0, 1});
  for (JobHost& host : job.hosts) host.facts.host_cores = 64;
  job.hosts[1].num_ranks = 9;
  job.hosts[1].unbind = "mpirun --bind-to none";
  EXPECT_EQ(job_notes(job),
            std::vector<std::string>{"h1: the launcher has bound a rank to 8 of 64 cores: mpirun --bind-to none"});
}

}  // namespace
}  // namespace braid::train::measure_job_test
