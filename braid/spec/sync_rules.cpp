// The rules between the keys of [sync] and the mesh.
#include <algorithm>

#include "braid/base/text.h"
#include "braid/model/shape.h"
#include "braid/spec/combine.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {
namespace {

bool feeds_errors_back(const SyncSpec& sync) {
  return sync.compression != CompressionKind::None && sync.compression != CompressionKind::BFloat16 &&
         sync.compression != CompressionKind::Float16;
}

bool is_on(Feature feature, const RunSpec& spec) {
  const auto on = features(spec);
  return std::find(on.begin(), on.end(), feature) != on.end();
}

// Returns true if the first and the last stage, which share tied parameters, may be on two ranks. The table of
// schedules does not hold this.
bool ends_apart(const RunSpec& spec) {
  return spec.mesh.pipe > 1 && !is_on(Feature::VShapedPipeline, spec) && !is_on(Feature::MirroredPipeline, spec);
}

// The rules against asynchronous servers where several ranks hold the same parameters. Such ranks push to different
// servers, which would apply pushes in different orders.
std::vector<CrossRule> server_rules() {
  return {
      {{"sync.consistency", "sync.replication", "mesh.tensor"},
       [](const View& at) { return !replicas_run_apart(at.spec) || at.spec.mesh.tensor == 1; },
       [](const View& at) {
         return cat("must be \"bsp\" when mesh.tensor is more than 1 (", at.spec.mesh.tensor,
                    "): tensor ranks hold norms and some biases alike, each with servers of its own, which would apply "
                    "pushes in different orders");
       }},
      {{"sync.consistency", "sync.replication", "model.output_weights", "mesh.pipe", "pipeline.schedule"},
       [](const View& at) {
         const bool tied = at.spec.model.output_weights == OutputWeights::Tied;
         return !replicas_run_apart(at.spec) || !tied || !ends_apart(at.spec);
       },
       [](const View&) {
         return std::string(
             "must be \"bsp\" when the first and the last stage are on two ranks and share the embedding: each has "
             "servers of its own, which would apply pushes in different orders (or untie it with "
             "model.output_weights = \"untied\")");
       }},
      {{"sync.consistency", "sync.replication", "mesh.pipe", "pipeline.schedule"},
       [](const View& at) { return !replicas_run_apart(at.spec) || !is_on(Feature::MirroredPipeline, at.spec); },
       [](const View&) {
         return std::string(
             "must be \"bsp\" in a bidirectional pipeline: the two copies of a stage push the same sum of gradients, "
             "which would count twice");
       }},
  };
}

// The rules of servers that are ranks of their own.
std::vector<CrossRule> server_rank_rules() {
  return {
      {{"sync.servers_on", "sync.replication"},
       [](const View& at) {
         return at.spec.sync.servers_on == ServersOn::Ranks ||
                at.spec.sync.replication == ReplicationKind::ParameterServer;
       },
       [](const View& at) {
         return cat("must be \"ranks\" with sync.replication = \"", at.spec.sync.replication,
                    "\", which has no servers");
       }},
      {{"sync.servers_on", "sync.servers", "sync.replication", "mesh.pipe", "mesh.data", "mesh.tensor"},
       [](const View& at) {
         const int64_t most = at.limits.all_ranks();
         return num_world_ranks(at.spec) <= most || num_ranks(at.spec.mesh) > most;
       },
       [](const View& at) {
         return cat("must leave at most ", counted(at.limits.all_ranks(), "rank"), " on ",
                    at.limits.num_hosts == 1 ? "this host" : "these hosts", " (", num_ranks(at.spec.mesh),
                    " of the mesh + ", counted(at.spec.sync.servers, "server"), " = ", num_world_ranks(at.spec), ")");
       }},
  };
}

}  // namespace

std::vector<CrossRule> sync_rules() {
  std::vector<CrossRule> rules = server_rules();
  for (CrossRule& rule : server_rank_rules()) rules.push_back(std::move(rule));
  rules.push_back({{"sync.zero_group", "mesh.data"},
                   [](const View& at) {
                     const int group = at.spec.sync.zero_group;
                     return group == 0 || (group <= at.spec.mesh.data && at.spec.mesh.data % group == 0);
                   },
                   [](const View& at) { return cat("must be 0 or divide mesh.data (", at.spec.mesh.data, ")"); }});
  rules.push_back(
      {{"sync.compression", "train.dtype"},
       [](const View& at) { return at.spec.train.dtype != DType::Float16 || !feeds_errors_back(at.spec.sync); },
       [](const View&) {
         return std::string(
             "must be none, bfloat16 or float16 when train.dtype is \"float16\": residuals are in units of a loss "
             "scale "
             "that changes");
       }});
  rules.push_back(
      {{"sync.compression", "mesh.tensor", "model.kv_heads", "model.heads"},
       [](const View& at) {
         return at.spec.mesh.tensor <= model::num_kv_heads(at.spec.model) || !feeds_errors_back(at.spec.sync);
       },
       [](const View& at) {
         return cat("must be \"none\", \"bfloat16\" or \"float16\" when mesh.tensor is more than the key heads (",
                    model::num_kv_heads(at.spec.model),
                    "): ranks that hold copies of a head would compress its gradient differently");
       }});
  return rules;
}

}  // namespace braid::spec
