// braid doctor: what this host or a job has, measured by the ranks of a run. On several hosts node 0 prints.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "braid/base/file_system.h"
#include "braid/base/host.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/doctor_report.h"
#include "braid/cli/job.h"
#include "braid/cli/measured_cluster.h"
#include "braid/cli/output_file.h"
#include "braid/cli/version.h"
#include "braid/launch/process_ranks.h"

namespace braid {
namespace {

struct DoctorRequest {
  JobOptions job;
  int ranks = 0;  // 0: one for each core
  std::string folder = ".", cluster;
  bool as_json = false;
};

JobHost this_host(const DoctorRequest& request, int num_ranks) {
  const std::string commit = build_commit();
  JobHost host{host_facts(), engines_text(), num_ranks, PosixFileSystem().free_bytes(request.folder)};
  if (!commit.empty()) host.version += ", commit " + commit;
  return host;
}

MeasuredJob on_one_host(const DoctorRequest& request, int num_ranks) {
  MeasuredJob job{{this_host(request, num_ranks)}, std::vector<int>(static_cast<size_t>(num_ranks)), {}};
  job.speed = measure_job(ProcessLauncher(), job.host_of_rank, request.folder);
  return job;
}

// A node of the job is a host, or a rank of one where a launcher has started each: then equal names are one host.
std::vector<int> hosts_of_nodes(const Job& job, const JobPlace& place, std::vector<JobHost> nodes,
                                std::vector<JobHost>& hosts) {
  std::vector<int> host_of_node;
  for (JobHost& node : nodes) {
    auto host = hosts.end();
    if (place.one_rank_each)
      host = std::ranges::find(hosts, node.facts.host, [](const JobHost& h) { return h.facts.host; });
    if (host == hosts.end()) {
      host = hosts.insert(host, std::move(node));
    } else {
      host->num_ranks += node.num_ranks;
    }
    host_of_node.push_back(static_cast<int>(host - hosts.begin()));
  }
  std::vector<int> host_of_rank;
  for (const int node : job.node_of_rank()) host_of_rank.push_back(host_of_node[static_cast<size_t>(node)]);
  return host_of_rank;
}

MeasuredJob on_hosts(const DoctorRequest& request, const JobPlace& place, Job& job) {
  const JobHost here = this_host(request, job.nodes()[static_cast<size_t>(job.rounds().node())].num_ranks);
  std::vector<JobHost> nodes;
  for (const auto& words : job.rounds().exchange({here.version, packed(here)})) {
    auto node = unpacked<JobHost>(words.at(1));
    if (!node) {
      throw ConfigError({{"braid", "", cat("must be one version on all hosts, and one has ", words.at(0)), ""}});
    }
    nodes.push_back(std::move(*node));
  }
  MeasuredJob measured;
  measured.host_of_rank = hosts_of_nodes(job, place, std::move(nodes), measured.hosts);
  measured.speed = measure_job(job.launcher(), measured.host_of_rank, request.folder);
  return measured;
}

void show(const DoctorRequest& request, const MeasuredJob& job) {
  std::cout << (request.as_json ? doctor_json(job) : doctor_text(job)) << std::flush;
  if (!request.cluster.empty()) write_file(request.cluster, measured_cluster_text(job));
}

void refuse_no_folder(const std::string& folder) {
  if (path_kind(folder) == PathKind::Folder) return;
  throw ConfigError({{"--out", folder, "must be a folder: its disk is measured", ""}});
}

// Before minutes are spent on what it would hold.
void refuse_unwritable(const std::string& path) {
  if (path.empty()) return;
  const bool was_there = path_kind(path) != PathKind::Nothing;
  if (!std::ofstream(path, std::ios::app)) {
    throw ConfigError({{"--cluster", path, cat("cannot be written: ", std::strerror(errno)), ""}});
  }
  if (!was_there) std::filesystem::remove(path);
}

}  // namespace

int doctor_command(const Words& words) {
  CLI::App app(
      "Measures what this host has, or, with --nodes or under a launcher, all hosts of a job: memory, products, disk, "
      "and how fast every two ranks reach each other. What looks wrong is a note.",
      "braid doctor");
  DoctorRequest request;
  add_job_options(app, request.job);
  app.add_option("--ranks", request.ranks, "ranks of this host; else one for each core")
      ->check(CLI::Range(1, kMaxProcessRanks));
  app.add_option("--out", request.folder, "folder whose disk is measured")->capture_default_str();
  app.add_option("--cluster", request.cluster, "file to write as a description of these hosts");
  app.add_flag("--json", request.as_json, "as one JSON object");
  if (const auto code = parse_words(app, words)) return *code;

  refuse_no_folder(request.folder);
  const JobPlace place = job_place(request.job);
  if (!place.note.empty()) std::cerr << "braid: " << place.note << std::endl;
  if (place.node == 0) refuse_unwritable(request.cluster);
  JobWork work;
  work.ranks_here = request.ranks > 0 ? request.ranks : std::min(num_cores(), kMaxProcessRanks);
  if (place.num_nodes == 1) {
    show(request, on_one_host(request, work.ranks_here));
    return 0;
  }
  if (place.one_rank_each) work.ranks_here = 1;
  work.settings = {"command = doctor"};
  work.engines = "";  // that versions differ is something to find out
  work.sums = GlooSumOrder::Engine;
  work.on_wait = [](const std::string& what) { std::cerr << "braid: waits for " << what << std::endl; };
  Job job(place, work);
  const MeasuredJob measured = on_hosts(request, place, job);
  if (job.leads()) show(request, measured);
  return 0;
}

}  // namespace braid
