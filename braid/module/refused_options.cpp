// Expresses options as a RunSpec, which is checked by the tables of fields and features in spec/.
#include "braid/module/refused_options.h"

#include <set>
#include <utility>

#include "braid/base/text.h"
#include "braid/disk/disk.h"
#include "braid/spec/fields.h"
#include "braid/spec/problems.h"

namespace braid::modules {
namespace {

class AskedRun {
 public:
  // Turns off features that no option controls.
  AskedRun() {
    run_.model.output_weights = OutputWeights::Untied;
    run_.optimizer.clip_norm = 0;
  }

  void add(const SyncSpec& sync, const Communicator& replicas) {
    run_.mesh.data = replicas.size();
    run_.sync = sync;
    judge(spec::sync_fields());
    if (sync.servers_on == ServersOn::Own) {
      found_.push_back({"sync.servers_on", "\"own\"",
                        "must be \"ranks\" for user modules: every rank of the program is a worker", "\"ranks\""});
    }
    const int group = sync.zero_group;
    if (group < 0 || (group > 0 && replicas.size() % group != 0)) {
      found_.push_back(
          {"sync.zero_group", cat(group), cat("must be 0 or divide the ", replicas.size(), " ranks"), "0"});
    }
    if (replicas.rank_kind() == RankKind::Process) run_.run.ranks = RanksAs::Processes;
    own_.push_back(spec::Feature::UserModules);
  }
  void add(const OptimizerSpec& servers) {
    run_.optimizer = servers;
    std::vector<spec::Field> of_optimizer;
    for (const spec::Field& field : spec::fields()) {
      if (spec::section_of(field) == "optimizer") of_optimizer.push_back(field);
    }
    judge(of_optimizer);
  }
  void add(const ModelMemory& memory) {
    if (memory.parameters == Kept::OnDisk) run_.memory.parameters = Tier::Disk;
    if (memory.gradients == Kept::OnDisk) run_.memory.gradients = Tier::Disk;
    if (memory.has_disk()) add_folders(memory);
    if (!memory.has_disk() && !memory.folders.empty()) {
      found_.push_back({"memory.folders", memory.folders.front(), "is not used: nothing is Kept::OnDisk", "{}"});
    }
    if (memory.chunk_bytes <= 0) {
      found_.push_back({"memory.chunk_bytes", cat(memory.chunk_bytes), "must be positive", ""});
    }
  }
  void add(const Schedule& schedule) {
    own_ = spec::features_of(schedule);
    own_.push_back(spec::Feature::UserPipeline);
    name_ = schedule.name;
  }

  std::vector<Problem> refused() && {
    std::vector<spec::Feature> on = spec::features(run_);
    on.insert(on.end(), own_.begin(), own_.end());
    run_.pipeline.schedule = name_;  // set after features(), because own_ has the features of the schedule's actions
    for (Problem& problem : spec::refused_pairs(on, run_, faulty_)) found_.push_back(std::move(problem));
    return std::move(found_);
  }

 private:
  void add_folders(const ModelMemory& memory) {
    if (memory.folders.empty()) {
      found_.push_back({"memory.folders", "{}", "must name a folder for what is on disk", ""});
    }
    disk::Options place;
    place.folders = memory.folders;
    place.key = "memory.folders";
    for (Problem& problem : disk::problems(place)) found_.push_back(std::move(problem));
  }
  void judge(const std::vector<spec::Field>& fields) {
    for (const spec::Field& field : fields) {
      auto problem = spec::broken_rule(field, run_);
      if (!problem) continue;
      faulty_.insert(field.key);
      found_.push_back(std::move(*problem));
    }
  }

  RunSpec run_;
  std::vector<spec::Feature> own_;  // features that do not follow from run_
  std::string name_;                // name of the schedule
  std::set<std::string> faulty_;
  std::vector<Problem> found_;
};

}  // namespace

std::vector<Problem> refused_of_replicas(const SyncedModules::Specs& specs, const Communicator& replicas) {
  AskedRun asked;
  if (specs.sync.replication == ReplicationKind::ParameterServer) asked.add(specs.optimizer);
  asked.add(specs.sync, replicas);
  asked.add(specs.memory);
  return std::move(asked).refused();
}

std::vector<Problem> refused_of_pipeline(const Schedule& schedule, const SyncedModules::Specs& specs,
                                         const Communicator* replicas) {
  AskedRun asked;
  asked.add(schedule);
  asked.add(specs.memory);
  if (replicas) asked.add(specs.sync, *replicas);
  std::vector<Problem> found = std::move(asked).refused();
  if (!replicas && specs.sync != SyncSpec()) {
    found.push_back({"sync", "given", "needs the ranks to be kept in step with, Options::data", "none"});
  }
  return found;
}

}  // namespace braid::modules
