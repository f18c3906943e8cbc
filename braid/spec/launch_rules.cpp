// The rules of the [run] section: what a rank is, and the engine that connects ranks.
#include "braid/base/text.h"
#include "braid/spec/cross_rules.h"

namespace braid::spec {
namespace {

bool as_processes(const RunSpec& spec) { return spec.run.ranks == RanksAs::Processes; }

bool engine_fits(const View& at) {
  const LaunchSpec& run = at.spec.run;
  return run.engine == CommEngine::Auto || facts_of(run.engine).connects(rank_places(run, at.limits.num_hosts));
}

// Returns the text of the rule, such as: must be "tcp", "gloo" or "mpi" on several hosts.
std::string engine_text(const View& at) {
  const LaunchSpec& run = at.spec.run;
  const RankPlaces places = rank_places(run, at.limits.num_hosts);
  if (places == RankPlaces::Threads) {
    return cat("needs run.ranks = \"processes\"", facts_of(run.engine).needs_mpirun ? ", under mpirun" : "");
  }
  OneOf engines;
  for (const EngineFacts& facts : kEngineFacts) {
    if (facts.connects(places)) engines.words.emplace_back(word(facts.engine));
  }
  return cat("must be ", rule_text(engines),
             places == RankPlaces::OneHost ? " with run.ranks \"processes\"" : " on several hosts");
}

}  // namespace

std::vector<CrossRule> launch_rules() {
  return {
      {{"run.engine", "run.ranks"}, engine_fits, engine_text},
      {{"run.ranks", "mesh.pipe", "mesh.data", "mesh.context", "mesh.tensor", "sync.servers", "sync.servers_on"},
       [](const View& at) {
         return !as_processes(at.spec) || num_world_ranks(at.spec) <= kMaxProcessRanks * at.limits.num_hosts;
       },
       [](const View& at) {
         return cat("must be \"threads\" for more than ", kMaxProcessRanks, " ranks on a host (",
                    num_world_ranks(at.spec), ")");
       }},
      {{"run.ranks", "train.device"},
       [](const View& at) { return !as_processes(at.spec) || at.spec.train.device == DeviceKind::Cpu; },
       [](const View&) {
         return std::string(
             "must be \"threads\" with train.device = \"cuda\": its libraries are opened before ranks "
             "start, and a fork of a process that has them open cannot use them");
       }},
  };
}

}  // namespace braid::spec
