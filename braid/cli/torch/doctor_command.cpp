// braid doctor: measures this host, or all hosts of a job, with ranks like those of a run. In a job, node 0 prints.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/host.h"
#include "braid/base/output_file.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/terminal.h"
#include "braid/cli/torch/doctor_report.h"
#include "braid/cli/torch/job.h"
#include "braid/cli/torch/measured_cluster.h"
#include "braid/cli/torch/run_folder.h"
#include "braid/cli/version.h"
#include "braid/launch/process_ranks.h"

namespace braid::cli {
namespace {

struct DoctorRequest {
  JobOptions job;
  int ranks = 0;  // 0: one for each core
  std::string folder = ".", cluster;
  bool as_json = false;
  std::string unbind;  // as in train::JobHost
};

// Returns the launcher's option that lets a rank run on all cores of its host; empty if it binds no ranks.
std::string unbind_option(const std::string& launcher) {
  if (launcher == "Open MPI") return "mpirun --bind-to none";
  if (launcher == "hydra") return "mpirun -bind-to none";
  return launcher == "srun" ? "srun --cpu-bind=none" : "";
}

train::ClusterRates cluster_rates(const DoctorRequest& request) {
  return request.cluster.empty() ? train::ClusterRates::Skipped : train::ClusterRates::Measured;
}

std::string version_here() {
  const std::string commit = build_commit();
  const std::string version = version_text(CommEngine::Tcp);
  return commit.empty() ? version : cat(version, ", commit ", commit);
}

train::JobHost this_host(const DoctorRequest& request, int num_ranks) {
  return {host_facts(), version_here(), num_ranks, PosixFileSystem().free_bytes(request.folder), request.unbind};
}

train::MeasuredJob on_one_host(const DoctorRequest& request, int num_ranks) {
  train::MeasuredJob job{{this_host(request, num_ranks)}, std::vector<int>(static_cast<size_t>(num_ranks)), {}};
  job.speed = train::measure_job(ProcessLauncher(), job.host_of_rank, request.folder, cluster_rates(request));
  return job;
}

train::MeasuredJob on_hosts(const DoctorRequest& request, Job& job) {
  const train::JobHost here = this_host(request, job.nodes()[static_cast<size_t>(job.rounds().node())].num_ranks);
  const std::vector<train::JobHost> nodes = job.rounds().exchange(here);
  train::MeasuredJob measured;
  measured.host_of_rank = job.host_of_rank();
  for (size_t rank = 0; rank < measured.host_of_rank.size(); ++rank) {
    const auto host = static_cast<size_t>(measured.host_of_rank[rank]);
    if (host == measured.hosts.size()) {
      measured.hosts.push_back(nodes[static_cast<size_t>(job.node_of_rank()[rank])]);
      measured.hosts.back().num_ranks = 0;
    }
    ++measured.hosts[host].num_ranks;
  }
  measured.speed = train::measure_job(job.launcher(), measured.host_of_rank, request.folder, cluster_rates(request));
  return measured;
}

void show(const DoctorRequest& request, const train::MeasuredJob& job) {
  std::cout << (request.as_json ? doctor_json(job) : shown_on_stdout(doctor_text(job))) << std::flush;
  if (!request.cluster.empty()) write_named_file(request.cluster, measured_cluster_text(job));
}

void refuse_no_folder(const std::string& folder) {
  if (path_kind(folder) == PathKind::Folder) return;
  throw ConfigError({{"--out", folder, "must be a folder: its disk is measured", ""}});
}

// Throws ConfigError if the cluster file cannot be written, before minutes are spent on its measurements.
void refuse_unwritable(const std::string& path) {
  if (path.empty()) return;
  if (is_written_in_place(path)) return;
  const bool is_folder = path_kind(path) == PathKind::Folder;
  const std::string why = is_folder ? "cannot be written: Is a directory" : why_not_writable(parent_folder(path));
  if (!why.empty()) throw ConfigError({{"--cluster", path, why, ""}});
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
  app.add_option("--cluster", request.cluster, "file to write as a description of these hosts")->check(output_name());
  app.add_flag("--json", request.as_json, "as one JSON object");
  if (const auto code = parse_words(app, words)) return *code;

  refuse_no_folder(request.folder);
  JobPlace place = job_place(request.job);
  if (!place.note.empty()) std::cerr << "braid: " << shown_on_line(place.note) << std::endl;
  if (place.node == 0) refuse_unwritable(request.cluster);
  request.unbind = unbind_option(place.launcher);
  JobWork work;
  work.ranks_here = request.ranks > 0 ? request.ranks : std::min(num_cores(), kMaxProcessRanks);
  if (place.num_nodes == 1) {
    show(request, on_one_host(request, work.ranks_here));
    return 0;
  }
  if (place.one_rank_each) work.ranks_here = 1;
  work.settings = {"command = doctor"};
  work.engines = version_here();
  work.on_wait = [](const std::string& what) { std::cerr << "braid: waits for " << shown_on_line(what) << std::endl; };
  Job job(place, work);
  const train::MeasuredJob measured = on_hosts(request, job);
  if (job.leads()) show(request, measured);
  return 0;
}

}  // namespace braid::cli
