// The table of combinations, and the keys that switch each feature on.
#include "braid/spec/combine.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/model/shape.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/parameter_groups.h"
#include "braid/spec/partition.h"
#include "braid/spec/recompute.h"

namespace braid::spec {
namespace {

struct FeatureRow {
  Feature feature;
  const char* text;
  const char* key;
  bool (*on)(const RunSpec& spec);
};

// Several stages on one rank count as a pipeline. An asynchronous pipeline counts even with one stage, because it
// updates within the step.
template <Feature kKind>
bool runs(const RunSpec& spec) {
  const ScheduleTraits* traits = traits_of(spec.pipeline);
  return traits && pipeline_kind(*traits) == kKind && (traits->asynchronous() || num_stages(spec) > 1);
}

// Returns true if some stage recomputes with this policy.
bool recomputes(const RunSpec& spec, Recompute::Keeps keeps) {
  const auto entries = recompute_entries(spec.memory);
  return std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) {
    const auto policy = recompute_policy(entry);
    return policy && policy->keeps == keeps;
  });
}

constexpr FeatureRow kFeatures[kNumFeatures] = {
    {Feature::FlushPipeline, "flushed pipeline", "pipeline.schedule", runs<Feature::FlushPipeline>},
    {Feature::ChunkedPipeline, "chunked pipeline", "pipeline.schedule", runs<Feature::ChunkedPipeline>},
    {Feature::ZeroBubblePipeline, "zero-bubble pipeline", "pipeline.schedule", runs<Feature::ZeroBubblePipeline>},
    {Feature::VShapedPipeline, "V-shaped pipeline", "pipeline.schedule", runs<Feature::VShapedPipeline>},
    {Feature::MirroredPipeline, "bidirectional pipeline", "pipeline.schedule", runs<Feature::MirroredPipeline>},
    {Feature::TablePipeline, "action table", "pipeline.schedule",
     [](const RunSpec& spec) { return !schedule_file(spec.pipeline).empty(); }},
    {Feature::AsynchronousPipeline, "asynchronous pipeline", "pipeline.schedule", runs<Feature::AsynchronousPipeline>},
    {Feature::TiedEmbedding, "tied embedding", "model.output_weights",
     [](const RunSpec& spec) { return spec.model.output_weights == OutputWeights::Tied; }},
    {Feature::Clipping, "gradient clipping", "optimizer.clip_norm",
     [](const RunSpec& spec) { return spec.optimizer.clip_norm > 0; }},
    {Feature::Dropout, "dropout", "model.dropout", [](const RunSpec& spec) { return spec.model.dropout > 0; }},
    {Feature::Experts, "experts", "model.experts", [](const RunSpec& spec) { return spec.model.experts > 0; }},
    {Feature::DocumentAttention, "attention by document", "data.attention",
     [](const RunSpec& spec) { return spec.data.attention == AttentionMask::Document; }},
    {Feature::LossScaling, "loss scaling", "train.dtype",
     [](const RunSpec& spec) { return spec.train.dtype == DType::Float16; }},
    {Feature::NarrowWeights, "16-bit weights", "train.dtype",
     [](const RunSpec& spec) { return spec.train.dtype == DType::BFloat16 || spec.train.dtype == DType::Float16; }},
    {Feature::SelectiveRecompute, "selective recompute", "memory.recompute",
     [](const RunSpec& spec) { return recomputes(spec, Recompute::Keeps::Selected); }},
    {Feature::SegmentRecompute, "recompute of blocks", "memory.recompute",
     [](const RunSpec& spec) {
       return recomputes(spec, Recompute::Keeps::SegmentInputs) || recomputes(spec, Recompute::Keeps::Listed);
     }},
    {Feature::HostOptimizer, "optimizer states in host memory", "memory.optimizer",
     [](const RunSpec& spec) { return spec.memory.optimizer == Tier::Host; }},
    {Feature::DiskOptimizer, "optimizer states on disk", "memory.optimizer",
     [](const RunSpec& spec) { return spec.memory.optimizer == Tier::Disk; }},
    {Feature::HostGradients, "gradients in host memory", "memory.gradients",
     [](const RunSpec& spec) { return spec.memory.gradients == Tier::Host; }},
    {Feature::DiskGradients, "gradients on disk", "memory.gradients",
     [](const RunSpec& spec) { return spec.memory.gradients == Tier::Disk; }},
    {Feature::HostParameters, "parameters in host memory", "memory.parameters",
     [](const RunSpec& spec) { return spec.memory.parameters == Tier::Host; }},
    {Feature::DiskParameters, "parameters on disk", "memory.parameters",
     [](const RunSpec& spec) { return spec.memory.parameters == Tier::Disk; }},
    {Feature::HostActivations, "activations in host memory", "memory.activations",
     [](const RunSpec& spec) { return spec.memory.activations == Tier::Host; }},
    {Feature::DiskActivations, "activations on disk", "memory.activations",
     [](const RunSpec& spec) { return spec.memory.activations == Tier::Disk; }},
    {Feature::Data, "data parallelism", "mesh.data", [](const RunSpec& spec) { return spec.mesh.data > 1; }},
    {Feature::UnequalShares, "unequal shares of the batch", "mesh.batch_shares",
     [](const RunSpec& spec) { return !has_equal_shares(spec.mesh); }},
    {Feature::Context, "context parallelism", "mesh.context",
     [](const RunSpec& spec) { return spec.mesh.context > 1; }},
    {Feature::Expert, "expert parallelism", "mesh.expert", [](const RunSpec& spec) { return spec.mesh.expert > 1; }},
    {Feature::Tensor, "tensor parallelism", "mesh.tensor", [](const RunSpec& spec) { return spec.mesh.tensor > 1; }},
    {Feature::CopiedKeyHeads, "more tensor ranks than key heads", "mesh.tensor",
     [](const RunSpec& spec) { return spec.mesh.tensor > model::num_kv_heads(spec.model); }},
    {Feature::SequenceParallel, "sequence parallelism", "mesh.sequence_parallel",
     [](const RunSpec& spec) { return spec.mesh.sequence_parallel; }},
    {Feature::Reproducible, "reproducible reduction", "train.reduction",
     [](const RunSpec& spec) { return spec.train.reduction == Reduction::Reproducible; }},
    {Feature::Compression, "gradient compression", "sync.compression",
     [](const RunSpec& spec) { return spec.sync.compression != CompressionKind::None; }},
    {Feature::ShardedOptimizer, "sharded optimizer", "sync.zero",
     [](const RunSpec& spec) { return spec.sync.zero == 1; }},
    {Feature::ShardedGradients, "sharded gradients", "sync.zero",
     [](const RunSpec& spec) { return spec.sync.zero == 2; }},
    {Feature::ShardedParameters, "sharded parameters", "sync.zero",
     [](const RunSpec& spec) { return spec.sync.zero == 3; }},
    {Feature::LocalUpdates, "local updates", "sync.replication",
     [](const RunSpec& spec) {
       return spec.sync.replication == ReplicationKind::LocalSgd || spec.sync.replication == ReplicationKind::DiLoCo;
     }},
    {Feature::ParameterServers, "parameter server", "sync.replication",
     [](const RunSpec& spec) { return spec.sync.replication == ReplicationKind::ParameterServer; }},
    {Feature::MatrixUpdates, "updates of whole matrices", "optimizer.kind",
     [](const RunSpec& spec) { return spec.optimizer.kind == OptimizerKind::Muon; }},
    {Feature::RatesByName, "groups of parameters", "optimizer.groups",
     [](const RunSpec& spec) { return std::ranges::any_of(spec.optimizer.groups, has_rates); }},
    {Feature::NarrowStates, "optimizer states of fewer bits", "optimizer.state_dtype",
     [](const RunSpec& spec) { return spec.optimizer.state_dtype != StateType::Float32; }},
    {Feature::ProcessRanks, "ranks that are processes", "run.ranks",
     [](const RunSpec& spec) { return spec.run.ranks == RanksAs::Processes; }},
    {Feature::UserModules, "user modules on data ranks", "", [](const RunSpec&) { return false; }},
    {Feature::UserPipeline, "a pipeline of user modules", "", [](const RunSpec&) { return false; }},
};

constexpr const char* kHostTier =
    "host memory is the device's memory on CPUs, and for other devices it is not built yet";
constexpr const char* kServersShard = "the servers have the optimizer, and shard its states (sync.servers)";

const FeatureRow& row(Feature feature) {
  const auto& found = kFeatures[static_cast<int>(feature)];
  check(found.feature == feature, "the table of features is in the order of the enum");
  return found;
}

}  // namespace

bool refused(Verdict verdict, Purpose purpose) {
  return verdict == Verdict::Refused || (verdict == Verdict::NotBuilt && purpose == Purpose::Train);
}

std::string text(Feature feature) { return row(feature).text; }
std::string key(Feature feature) { return row(feature).key; }

Feature pipeline_kind(const ScheduleTraits& traits) {
  if (traits.asynchronous()) return Feature::AsynchronousPipeline;
  switch (traits.placement) {
    case schedule::StagePlacement::Linear:
      return traits.splits_backward ? Feature::ZeroBubblePipeline : Feature::FlushPipeline;
    case schedule::StagePlacement::Loop:
      return traits.splits_backward ? Feature::ZeroBubblePipeline : Feature::ChunkedPipeline;
    case schedule::StagePlacement::V:
      return Feature::VShapedPipeline;
    case schedule::StagePlacement::Mirrored:
      return Feature::MirroredPipeline;
  }
  throw InternalError("a placement of stages without a kind of pipeline");
}

std::vector<Feature> features_of(const Schedule& schedule) {
  const auto has = [&](Op op) {
    return std::any_of(schedule.programs.begin(), schedule.programs.end(), [op](const Program& program) {
      return std::any_of(program.begin(), program.end(), [op](const Action& action) { return action.op == op; });
    });
  };
  std::vector<Feature> on;
  if (schedule.mirrored()) on.push_back(Feature::MirroredPipeline);
  if (has(Op::Update)) on.push_back(Feature::AsynchronousPipeline);
  if (has(Op::Recompute)) on.push_back(Feature::SegmentRecompute);
  return on;
}

const std::vector<Combination>& combinations() {
  using enum Feature;
  using enum Verdict;
  static const std::vector<Combination> kTable = {
      {Context, LocalUpdates, Refused, "a replica is one rank of each stage"},
      {Context, ParameterServers, Refused, "a worker is one rank of each stage"},
      {Context, AsynchronousPipeline, Refused, "stages update within the step, each on its data ranks alone"},
      {Context, Compression, Refused, "context ranks sum parts of one gradient, uncompressed"},
      {Reproducible, Context, ChangesSemantics,
       "reproducible reduction promises the same bits across data and pipe sizes at one mesh.context and mesh.tensor, "
       "not across context sizes"},
      {Experts, Experts, NotBuilt, "a mixture of experts is not built yet"},
      {Expert, Expert, NotBuilt, "expert parallelism is not built yet"},
      {HostOptimizer, HostOptimizer, NotBuilt, kHostTier},
      {HostGradients, HostGradients, NotBuilt, kHostTier},
      {HostParameters, HostParameters, NotBuilt, kHostTier},
      {HostActivations, HostActivations, NotBuilt, kHostTier},
      {DiskOptimizer, MatrixUpdates, NotBuilt, "a matrix is updated as a whole, not in chunks"},
      {DiskOptimizer, ParameterServers, Refused, "the servers have the optimizer's states"},
      {DiskOptimizer, LocalUpdates, NotBuilt, "averages of masters on disk are not built yet"},
      {DiskGradients, MatrixUpdates, NotBuilt, "a matrix is updated as a whole, not in chunks"},
      {DiskGradients, ParameterServers, Refused, "the servers have the optimizer's states"},
      {DiskGradients, LocalUpdates, NotBuilt, "averages of masters on disk are not built yet"},
      {DiskGradients, AsynchronousPipeline, Refused, "stages update within the step, from whole gradients"},
      {DiskGradients, Compression, Refused, "sums on disk are of uncompressed gradients"},
      {DiskParameters, MatrixUpdates, NotBuilt, "a matrix is updated as a whole, not in chunks"},
      {DiskParameters, ParameterServers, Refused, "the servers have the optimizer's states"},
      {DiskParameters, LocalUpdates, NotBuilt, "averages of masters on disk are not built yet"},
      {DiskParameters, AsynchronousPipeline, Refused, "versions of the weights are whole on every rank"},
      {DiskParameters, Compression, NotBuilt, "sums of gradients by unit are uncompressed"},
      {NarrowStates, HostOptimizer, NotBuilt, "updates of states of fewer bits are not built for devices yet"},
      {NarrowStates, MatrixUpdates, NotBuilt, "momenta of whole matrices are float32"},
      {NarrowStates, ParameterServers, Refused, "the servers have the optimizer's states, in the type of masters"},
      {UnequalShares, TablePipeline, Refused, "a table of actions has one number of microbatches"},
      {UnequalShares, AsynchronousPipeline, Refused, "all data ranks make each update of a step together"},
      {UnequalShares, Reproducible, Refused, "a balanced tree has as many microbatches on each data rank"},
      {UnequalShares, ShardedGradients, Refused,
       "data ranks sum gradients together after each microbatch (sync.zero = 1 can)"},
      {UnequalShares, ShardedParameters, Refused,
       "data ranks gather parameters together for each microbatch (sync.zero = 1 can)"},
      {UnequalShares, LocalUpdates, Refused, "replicas weigh alike in the average of their weights"},
      {UnequalShares, ParameterServers, Refused, "workers weigh alike in what servers add up"},
      {LocalUpdates, Data, ChangesSemantics,
       "replicas train apart, each clipping by its own norm, and average their weights every sync.period steps"},
      {LocalUpdates, AsynchronousPipeline, Refused, "its stages update at different times, so no step ends a period"},
      {LocalUpdates, MirroredPipeline, Refused, "a replica's two copies of a stage would have to stay alike"},
      {LocalUpdates, ShardedOptimizer, Refused, "each replica updates all of its own weights"},
      {LocalUpdates, ShardedGradients, Refused, "each replica updates all of its own weights"},
      {LocalUpdates, ShardedParameters, Refused, "each replica updates all of its own weights"},
      {ParameterServers, AsynchronousPipeline, Refused,
       "its stages update within the step, and keep versions of weights that servers do not know"},
      {ParameterServers, ShardedOptimizer, Refused, kServersShard},
      {ParameterServers, ShardedGradients, Refused, kServersShard},
      {ParameterServers, ShardedParameters, Refused, kServersShard},
      {ParameterServers, MatrixUpdates, Refused, "servers hold stretches of the parameters, and no matrix as a whole"},
      {ParameterServers, RatesByName, Refused, "servers know no names"},
      {ParameterServers, Clipping, ChangesSemantics,
       "a worker of a parameter server clips by the norm of its own replica's gradient"},
      {ParameterServers, LossScaling, Refused, "a worker whose gradients overflow would owe the servers a push"},
      {ParameterServers, Reproducible, Refused, "servers add pushes in the order of workers, not as a balanced tree"},
      {AsynchronousPipeline, AsynchronousPipeline, ChangesSemantics,
       "an asynchronous pipeline updates with gradients of older weights, up to mesh.pipe - 1 updates late"},
      {AsynchronousPipeline, TiedEmbedding, Refused,
       "the first and the last stage would update the shared weight at different times (untie it with "
       "model.output_weights = \"untied\")"},
      {AsynchronousPipeline, Clipping, ChangesSemantics,
       "in an asynchronous pipeline each stage clips by the norm of its own gradients"},
      {AsynchronousPipeline, LossScaling, Refused,
       "an overflow would have to take back updates that other microbatches have used"},
      {AsynchronousPipeline, UserPipeline, Refused, "user modules have one version of their weights"},
      {MirroredPipeline, UserPipeline, Refused, "user modules have one copy of their parameters"},
      {Compression, Data, ChangesSemantics,
       "replicas add up what compression makes of their gradients: rounded, or with the rest carried over to later "
       "steps"},
      {Compression, MirroredPipeline, ChangesSemantics,
       "the two copies of a stage add up what compression makes of their gradients"},
      {Compression, Reproducible, Refused, "what is rounded depends on how many replicas there are"},
      {Compression, ShardedOptimizer, Refused, "shards are summed uncompressed"},
      {Compression, ShardedGradients, Refused, "shards are summed uncompressed"},
      {Compression, ShardedParameters, Refused, "shards are summed uncompressed"},
      {Compression, LocalUpdates, Refused, "weights are averaged uncompressed"},
      {Compression, ParameterServers, Refused, "pushes and pulls are uncompressed"},
      {SegmentRecompute, UserPipeline, Refused,
       "users' layers say themselves whether they are recomputed (LayerOptions::activations)"},
      {ShardedOptimizer, AsynchronousPipeline, Refused, "versions of the weights are whole on every rank"},
      {ShardedGradients, AsynchronousPipeline, Refused, "versions of the weights are whole on every rank"},
      {ShardedParameters, AsynchronousPipeline, Refused, "versions of the weights are whole on every rank"},
      {ShardedGradients, MirroredPipeline, Refused,
       "the two ranks of a stage complete microbatches in different orders (sync.zero = 1 can)"},
      {ShardedParameters, MirroredPipeline, Refused,
       "the two ranks of a stage complete microbatches in different orders (sync.zero = 1 can)"},
      {Reproducible, CopiedKeyHeads, ChangesSemantics,
       "tensor ranks that share a key head add parts of its gradient, so reproducible reduction promises the same bits "
       "across data and pipe sizes at one mesh.tensor, not across tensor sizes"},
      {ParameterServers, UserPipeline, Refused, "its ranks update the parameters of their stages"},
      {NarrowWeights, UserModules, Refused, "a user's optimizer updates the weights themselves, with no masters"},
  };
  return kTable;
}

Combination combination(Feature a, Feature b) {
  for (const auto& known : combinations()) {
    if ((known.a == a && known.b == b) || (known.a == b && known.b == a)) return known;
  }
  return {a, b, Verdict::Supported, ""};
}

std::vector<Feature> features(const RunSpec& spec) {
  std::vector<Feature> on;
  for (const auto& candidate : kFeatures) {
    if (candidate.on(spec)) on.push_back(candidate.feature);
  }
  return on;
}

std::vector<std::string> notes(const RunSpec& spec) {
  std::vector<std::string> sentences;
  const auto on = features(spec);
  for (size_t i = 0; i < on.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const auto pair = combination(on[j], on[i]);
      if (pair.verdict == Verdict::ChangesSemantics) sentences.push_back(pair.why);
    }
  }
  return sentences;
}

}  // namespace braid::spec
