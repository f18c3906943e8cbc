// Combines the parts of a prediction.
#include "braid/plan/pipelined_run.h"

#include <algorithm>
#include <utility>

#include "braid/plan/balanced_partition.h"
#include "braid/plan/block_work.h"
#include "braid/plan/braid_memory.h"
#include "braid/plan/buffer_memory.h"
#include "braid/plan/device_rates.h"
#include "braid/plan/pipeline_question.h"
#include "braid/plan/rank_shards.h"
#include "braid/plan/step_moves.h"
#include "braid/plan/step_timeline.h"
#include "braid/plan/tier_bytes.h"
#include "braid/plan/torchtitan.h"
#include "braid/spec/partition.h"

namespace braid::plan {

DevicesInUse devices_in_use(const RunSpec& spec, const Cluster& cluster) {
  int64_t left = num_ranks(spec.mesh);
  DevicesInUse used;
  for (const DeviceGroup& group : cluster.devices) {
    const int64_t taken = group.shared_cores ? group.num_devices() : std::min(left, group.num_devices());
    used.count += static_cast<double>(taken);
    used.peak += static_cast<double>(taken) * DeviceRates(group, spec.train.dtype).peak();
    left = std::max<int64_t>(left - taken, 0);
  }
  return used;
}

double best_rate_of_all(const RunSpec& spec, const Cluster& cluster) {
  double rate = 0;
  for (const DeviceGroup& group : cluster.devices) {
    rate += static_cast<double>(group.num_devices()) * DeviceRates(group, spec.train.dtype).best_rate();
  }
  return rate;
}

namespace {

constexpr double kSumError = 1e-9;  // relative rounding error of sums of seconds

double tokens_of_step(const RunSpec& spec) { return static_cast<double>(spec.train.batch) * spec.model.context; }

// Returns the rank that holds the last stage. In a mirrored pipeline both end ranks hold the first and the last stage,
// so it returns the first rank.
int last_rank(const RunLayout& layout, const ScheduleTraits& traits) {
  if (traits.placement == schedule::StagePlacement::Mirrored) return 0;
  return schedule::owner_of_stage(traits.placement, layout.pipe, static_cast<int>(layout.stages.size()) - 1);
}

// Returns the number of weight versions that a rank keeps. An asynchronous pipeline keeps the versions that
// microbatches in flight use (Narayanan et al., "PipeDream", 2019; "PipeDream-2BW", 2021) and the one that an update is
// writing (param/weight_versions.h).
int weight_versions(const PlannedRun& run, const ScheduleTraits& traits, int rank) {
  if (!traits.asynchronous()) return 1;
  const bool vertical = run.spec.pipeline.weights == StageWeights::Vertical;
  const int of_flight =
      traits.versions == schedule::VersionRule::DoubleBuffered ? 2 : run.layout.pipe - (vertical ? 0 : rank);
  return std::min(of_flight, num_updates(run)) + 1;
}

// Returns the bytes of exchange buffers. In Megatron-LM under ZeRO 3 they hold the weights of the running block and of
// the next one, which is being gathered.
double exchanged_bytes(const PlannedRun& run, const RankShare& share) {
  if (run.formulas == FormulaSet::Braid) return exchange_buffer_bytes(run, share);
  if (is_torchtitan(run.formulas)) return torchtitan_weight_bytes(run, share);
  if (run.spec.sync.zero < 3 || share.blocks == 0) return 0;
  return 2 / std::max(share.blocks, 2.0) * share.parameters.count() * element_bytes(run.spec.train.dtype);
}

}  // namespace

bool alike_but_for_zero(const RunSpec& a, const RunSpec& b) {
  // The list has every member of RunSpec, or it does not compile.
  const auto& [model, data, mesh, pipeline, synced, memory, optimizer, train, checkpoint, started] = a;
  SyncSpec sync = synced;
  sync.zero = b.sync.zero;
  sync.zero_group = b.sync.zero_group;
  // Members that a search varies most are compared first.
  return memory == b.memory && pipeline == b.pipeline && mesh == b.mesh && train == b.train && sync == b.sync &&
         model == b.model && data == b.data && optimizer == b.optimizer && checkpoint == b.checkpoint &&
         started == b.run;
}

PipelinedRun::PipelinedRun(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options)
    : spec_(spec),
      cluster_(with_cores_of_ranks(cluster, spec)),
      formulas_(options.formulas),
      rates_(rates_of(spec_, cluster_)),
      traits_(*spec::traits_of(spec_.pipeline)),
      used_(devices_in_use(spec, cluster)) {
  spec_.sync.zero = sharded_stage(spec);
  ReplicaLayouts layouts = replica_layouts(spec_, cluster_, formulas_, options.account);
  step_flops_ = tokens_of_step(spec) * model_flops_per_token(*layouts.each.front().account, formulas_);
  bound_seconds_ = step_flops_ / best_rate_of_all(spec, cluster);
  replica_of_data_rank_ = std::move(layouts.of_data_rank);
  replicas_.reserve(layouts.each.size());
  for (RunLayout& layout : layouts.each) add_replica(std::move(layout), options);
}

void PipelinedRun::add_replica(RunLayout layout, const PredictOptions& options) {
  Replica& replica = replicas_.emplace_back(std::move(layout));
  const PlannedRun run = planned(replica);
  const PartParameters parts = part_parameters(run.spec, run.layout);
  const std::vector<StageFacts> stages = stage_facts(run, parts);
  replica.shares = rank_shares(run, traits_, stages, parts);
  PipelineQuestion question = pipeline_question(run, traits_, stages);
  question.table = options.table;
  question.kept = options.kept;
  PipelineOutcome outcome = pipeline_outcome(question, options.pipeline);
  for (size_t rank = 0; rank < replica.shares.size(); ++rank) {
    replica.shares[rank].activations.read -= outcome.found_bytes[rank] / microbatches_of_stage(run);
    replica.repeats.push_back(rank > 0 && replica.shares[rank] == replica.shares[rank - 1]);
  }
  Prediction& pipelined = replica.pipelined;
  pipelined.seconds = pipeline_seconds(replica, outcome);
  pipelined.bubble = outcome.seconds > 0 ? std::max(0.0, 1 - outcome.busiest_seconds / outcome.seconds) : 0;
  for (const double held : outcome.held_bytes) pipelined.memory.push_back({.activations = static_cast<int64_t>(held)});
  if (question.received_bytes > 0) replica.received = std::move(outcome.received_bytes);
  replica.timeline = std::move(outcome.timeline);
  pipelined.bound_step_seconds = bound_seconds_;
  pipelined.memory_bytes = static_cast<int64_t>(cluster_.with_least_memory().usable_bytes());
}

PassSeconds PipelinedRun::Replica::slowest_rank() const {
  const auto seconds_of = [](const RankShare& share) { return share.passes.all().total(); };
  return std::ranges::max_element(shares, {}, seconds_of)->passes.all();
}

StepSeconds PipelinedRun::pipeline_seconds(const Replica& replica, const PipelineOutcome& outcome) const {
  const PassSeconds each = replica.slowest_rank();
  // The passes of the slowest rank run once for each microbatch. If several ranks share a core, passes are slower, and
  // the factor follows from the busiest rank's time.
  const bool crowded = ranks_per_core(planned(replica)) > 1;
  const double times = crowded ? outcome.busiest_seconds / each.total() : replica.layout.microbatches;
  StepSeconds seconds;
  seconds.compute = times * each.compute;
  seconds.tensor = times * each.tensor;
  seconds.context = times * each.context;
  const double idle = outcome.seconds - times * each.total();
  if (idle > kSumError * outcome.seconds) seconds.pipeline = idle;
  return seconds;
}

double PipelinedRun::kept_weights(const Replica& replica, size_t rank, const RankMemory& memory) const {
  const auto beside = static_cast<double>(memory.total() - memory.parameters);
  return moved_weights(planned(replica), replica.shares[rank], beside).kept;
}

void PipelinedRun::add_exchanges(const Replica& replica, Prediction& prediction) const {
  StepSeconds& seconds = prediction.seconds;
  const PlannedRun run = planned(replica);
  const int updates = num_updates(run);
  const double crowd = std::max(ranks_per_core(run), 1.0);
  for (size_t rank = 0; rank < replica.shares.size(); ++rank) {
    if (replica.repeats[rank]) continue;
    const RankShare& share = replica.shares[rank];
    const double kept = kept_weights(replica, rank, prediction.memory[rank]);
    if (rank == 0) prediction.disk_bytes = disk_bytes(run, share, kept);
    seconds.data = std::max(seconds.data, updates * data_seconds(run, share, kept));
    seconds.optimizer = std::max(seconds.optimizer, updates * (crowd * optimizer_seconds(run, share)));
  }
  seconds.data += tied_seconds(run, last_rank(replica.layout, traits_));
}

double PipelinedRun::received_by(const Replica& replica, int rank) const {
  return replica.received.empty() ? passed_bytes(planned(replica), rank) : replica.received[rank];
}

void PipelinedRun::add_states(const Replica& replica, Prediction& prediction) const {
  const PlannedRun run = planned(replica);
  const RunLayout& layout = replica.layout;
  const double two_tensors = layout.pipe > 1 ? 2 * tensor_bytes(run) : 0;
  double most_on_host = 0, most_on_disk = 0;
  for (int rank = 0; rank < layout.pipe; ++rank) {
    RankMemory& memory = prediction.memory[rank];
    if (replica.repeats[rank] && !traits_.asynchronous()) {
      const int64_t activations = memory.activations;
      memory = prediction.memory[rank - 1];
      memory.activations = activations;
      memory.communication += static_cast<int64_t>(received_by(replica, rank) - received_by(replica, rank - 1));
      continue;
    }
    const RankShare& share = replica.shares[rank];
    const StageParameters& parameters = share.parameters;
    const double passed = formulas_ == FormulaSet::Braid ? received_by(replica, rank) : two_tensors;
    const StateBytes all = held_bytes(spec_, layout, formulas_, parameters), bytes = in_memory(spec_, all);
    const double moments = bytes.optimizer + replication_bytes(spec_, layout.gradient_group) * parameters.count();
    memory.parameters = static_cast<int64_t>(weight_versions(run, traits_, rank) * bytes.weights + bytes.frozen);
    const bool by_tree = formulas_ == FormulaSet::Braid && spec_.train.reduction == Reduction::Reproducible &&
                         is_resident(spec_.memory.gradients);
    memory.gradients = static_cast<int64_t>(by_tree ? tree_gradient_bytes(run, share) : bytes.gradients);
    const double saved =
        save_bytes(spec_, parameters.shared, layout.gradient_group) - static_cast<double>(memory.activations);
    memory.moments = static_cast<int64_t>(moments + std::max(saved, 0.0));
    memory.communication = static_cast<int64_t>(passed + exchanged_bytes(run, share) + parameters.shared.reduced.kept +
                                                parameters.experts.reduced.kept);
    const bool on_host = formulas_ == FormulaSet::Braid && cluster_.devices.front().shared_cores;
    if (on_host) memory.snapshots = static_cast<int64_t>(snapshot_bytes(spec_, layout, parameters));
    most_on_host = std::max(most_on_host, bytes_on(Tier::Host, spec_, all));
    most_on_disk = std::max(most_on_disk, bytes_on(Tier::Disk, spec_, all));
  }
  for (int rank = 0; rank < layout.pipe; ++rank) {
    RankMemory& memory = prediction.memory[rank];
    memory.parameters +=
        static_cast<int64_t>(moved_weights(run, replica.shares[rank], static_cast<double>(memory.total())).in_memory);
  }
  const double most_offloaded = most_on_host > 0 ? most_on_host : most_on_disk;
  prediction.offloaded_bytes = static_cast<int64_t>(layout.most_of_node * most_offloaded);
  if (most_on_host > 0) prediction.host_bytes = static_cast<int64_t>(cluster_.host.bytes);
}

Prediction PipelinedRun::whole(const Replica& replica) const {
  Prediction prediction = replica.pipelined;
  add_states(replica, prediction);
  add_exchanges(replica, prediction);
  return prediction;
}

Prediction PipelinedRun::with_zero(int zero, int zero_group) {
  spec_.sync.zero = zero;
  spec_.sync.zero = sharded_stage(spec_);
  spec_.sync.zero_group = zero_group;
  Prediction prediction;
  for (const Replica& replica : replicas_) {
    Prediction one = whole(replica);
    prediction = prediction.memory.empty() ? std::move(one) : of_both_replicas(std::move(prediction), std::move(one));
  }
  const PlannedRun run = planned(replicas_.front());
  prediction.sync_bytes = num_updates(run) * sync_bytes(run, replicas_.front().shares.front()) +
                          tied_bytes(run, last_rank(run.layout, traits_));
  ParameterSum of_replica;
  for (const RankShare& share : replicas_.front().shares) of_replica += share.parameters.shared;
  prediction.server_bytes = static_cast<int64_t>(server_rank_bytes(spec_, run.layout, of_replica));
  if (cluster_.devices.front().shared_cores) prediction.server_limit_bytes = prediction.memory_bytes;
  prediction.tokens_per_second_per_device = tokens_of_step(spec_) / prediction.step_seconds() / used_.count;
  prediction.range = step_range(cluster_, formulas_);
  prediction.mfu = step_flops_ / prediction.step_seconds() / used_.peak;
  return prediction;
}

// The slowest rank by data_seconds() has the waits that the prediction adds to the step.
schedule::Timeline PipelinedRun::step_of(const Replica& replica) const {
  if (replica.timeline.ranks.empty()) return {};
  const PlannedRun run = planned(replica);
  const Prediction prediction = whole(replica);
  const int updates = num_updates(run);
  const double crowd = std::max(ranks_per_core(run), 1.0);
  const ByteSeconds rate{move_seconds(run, Tier::Disk, {.read = 1}), move_seconds(run, Tier::Disk, {.written = 1})};
  StepParts parts;
  double most = 0;
  for (size_t rank = 0; rank < replica.shares.size(); ++rank) {
    const RankShare& share = replica.shares[rank];
    const double kept = kept_weights(replica, rank, prediction.memory[rank]);
    parts.disks.push_back({.moves = disk_moves(run, share, kept),
                           .in_passes = rate,
                           .in_update = {crowd * rate.read, crowd * rate.written},
                           .hidden_seconds = crowd * hidden_offload_seconds(run, share)});
    const double seconds = updates * data_seconds(run, share, kept);
    if (seconds <= most) continue;
    most = seconds;
    const PassWaits waits = pass_waits(run, share, kept);
    const int microbatches = run.layout.microbatches;
    parts.waits = {rank, microbatches * waits.forward, microbatches * waits.backward};
  }
  parts.exchange_seconds = std::max(prediction.seconds.data - parts.waits.forward - parts.waits.backward, 0.0);
  return step_timeline(replica.timeline, parts);
}

std::vector<PredictedStep> PipelinedRun::steps() const {
  std::vector<PredictedStep> all(replicas_.size());
  for (size_t replica = 0; replica < all.size(); ++replica) all[replica].timeline = step_of(replicas_[replica]);
  for (size_t rank = 0; rank < replica_of_data_rank_.size(); ++rank) {
    all[replica_of_data_rank_[rank]].data_ranks.push_back(static_cast<int>(rank));
  }
  return all;
}

std::string PipelinedRun::balanced_shares() const {
  std::vector<double> seconds;
  for (const size_t replica : replica_of_data_rank_) {
    const Replica& here = replicas_[replica];
    seconds.push_back(std::max(ranks_per_core(planned(here)), 1.0) * here.slowest_rank().total());
  }
  const int all = spec_.train.batch / spec_.train.microbatch / spec_.mesh.expert;
  const ScheduleRequest step{spec_.mesh.pipe, all, spec_.pipeline.chunks, spec_.pipeline.group};
  return seconds.empty() ? kEqualShares : braid::plan::balanced_shares(seconds, traits_.name, step);
}

}  // namespace braid::plan
