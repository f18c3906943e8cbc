// The rules between train.on_spike, train.spike_threshold, train.check_replicas and other keys.
#include "braid/base/text.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/partition.h"

namespace braid::spec {
namespace {

bool has_servers(const RunSpec& spec) { return spec.sync.replication == ReplicationKind::ParameterServer; }

bool updates_within_step(const RunSpec& spec) {
  const ScheduleTraits* traits = traits_of(spec.pipeline);
  return traits && traits->asynchronous();
}

// A key, the value that it must have if losses come after the update, and whether a spec asks for another value.
struct Asking {
  const char* key;
  const char* must;
  bool (*asks)(const RunSpec& spec);
};

constexpr Asking kAsking[] = {
    {"train.on_spike", "\"stop\"", [](const RunSpec& spec) { return spec.train.on_spike != OnSpike::Stop; }},
    {"train.spike_threshold", "0", [](const RunSpec& spec) { return spec.train.spike_threshold > 0; }},
};

}  // namespace

std::vector<CrossRule> supervision_rules() {
  std::vector<CrossRule> rules;
  for (const Asking& each : kAsking) {
    rules.push_back({{each.key, "sync.replication"},
                     [each](const View& at) { return !each.asks(at.spec) || !has_servers(at.spec); },
                     [each](const View&) {
                       return cat("must be ", each.must,
                                  " with a parameter server, which updates before all workers have sent their loss");
                     }});
    rules.push_back({{each.key, "pipeline.schedule"},
                     [each](const View& at) { return !each.asks(at.spec) || !updates_within_step(at.spec); },
                     [each](const View&) {
                       return cat(
                           "must be ", each.must,
                           " in an asynchronous pipeline, whose stages make updates before the step's loss is known");
                     }});
  }
  rules.push_back(
      {{"train.check_replicas", "sync.replication"},
       [](const View& at) { return at.spec.train.check_replicas == 0 || !has_servers(at.spec); },
       [](const View&) {
         return std::string(
             "must be 0 with a parameter server: workers' weights are copies of the servers', each as of its "
             "own last pull");
       }});
  return rules;
}

}  // namespace braid::spec
