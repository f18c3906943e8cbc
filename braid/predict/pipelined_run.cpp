// Putting the parts of a prediction together.
#include "braid/predict/pipelined_run.h"

#include <algorithm>
#include <set>

#include "braid/predict/activation_memory.h"
#include "braid/predict/block_work.h"
#include "braid/predict/braid_memory.h"
#include "braid/spec/pipeline_stages.h"

namespace braid {
namespace {

constexpr double kSumError = 1e-9;  // relative, of sums of seconds

double tokens_of_step(const RunSpec& spec) { return static_cast<double>(spec.train.batch) * spec.model.context; }

// What ranks and the pipeline ask of a stage.
struct StageFacts {
  StagePasses passes;
  StageParameters parameters;
  HeldBytes held;
};

std::vector<StageFacts> stage_facts(const PlannedRun& run) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const std::vector<StagePasses> passes = stage_passes(spec, layout, cluster, formulas);
  std::vector<StageFacts> all(passes.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const StageLoad& load = layout.stages[i];
    if (i > 0 && load == layout.stages[i - 1]) {
      all[i] = all[i - 1];
      continue;
    }
    const StageParameters parameters = stage_parameters(spec, layout, load);
    if (formulas == FormulaSet::Braid) {
      all[i] = {passes[i],
                parameters,
                {kept_bytes(spec, layout, load), pending_kept_bytes(spec, layout, load),
                 working_most_bytes(run, load) + constant_bytes(spec, load)}};
      continue;
    }
    const double saved = load.blocks * saved_bytes(spec, layout, load.recompute);
    all[i] = {passes[i],
              parameters,
              {saved + end_bytes(spec, layout, load), load.blocks * pending_bytes(spec, layout),
               working_bytes(spec, layout, load)}};
  }
  return all;
}

std::vector<RankShare> rank_shares(const PlannedRun& run, const ScheduleTraits& traits,
                                   const std::vector<StageFacts>& stages) {
  const RunLayout& layout = run.layout;
  const bool mirrored = traits.placement == StagePlacement::Mirrored;
  std::vector<RankShare> shares(layout.pipe);
  const auto add = [&](int rank, size_t stage, double share_of_passes) {
    RankShare& share = shares[rank];
    const StagePasses& passes = stages[stage].passes;
    share.parameters += stages[stage].parameters;
    share.devices = layout.stages[stage].devices;
    share.blocks += layout.stages[stage].blocks;
    share.passes.forward += share_of_passes * passes.forward;
    share.passes.input_grad += share_of_passes * passes.input_grad;
    share.passes.weight_grad += share_of_passes * passes.weight_grad;
  };
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const int rank = owner_of_stage(traits.placement, layout.pipe, static_cast<int>(stage));
    add(rank, stage, mirrored ? 0.5 : 1);
    if (mirrored) add(layout.pipe - 1 - rank, stage, 0.5);
  }
  const int first = owner_of_stage(traits.placement, layout.pipe, 0);
  const int last = owner_of_stage(traits.placement, layout.pipe, static_cast<int>(stages.size()) - 1);
  if (stages.size() == 1 || (first != last && !mirrored)) return shares;
  for (const int rank : std::set{first, last}) shares[rank].parameters.shared += -1 * tied_parameters(run.spec, layout);
  return shares;
}

// What Megatron-LM's host does around an exchange before its device computes again: the transfers of Qi et al. 2023,
// table 9, less their bytes over the link.
constexpr double kMegatronStallSeconds = 3e-4;

double tensor_bytes(const PlannedRun& run) {
  return element_bytes(run.spec.train.dtype) * run.layout.tokens * run.spec.model.width;
}

// One tensor between stages over `links`. Megatron-LM sends a part of it from each tensor rank and gathers them in the
// node (Narayanan et al. 2021, section 4.1); with sequence parallelism each has its part alone.
double transfer_seconds(const PlannedRun& run, const GroupLinks& links) {
  const bool megatron = run.formulas == FormulaSet::Megatron, parallel = run.spec.mesh.sequence_parallel;
  const double bytes = tensor_bytes(run);
  const bool in_parts = megatron || parallel;
  const double sent =
      links.send_seconds(in_parts ? bytes / run.layout.tensor : bytes) + (megatron ? kMegatronStallSeconds : 0);
  if (!in_parts || parallel) return sent;
  return sent + GroupLinks(run.cluster, run.layout.tensor_group).all_gather_seconds(bytes);
}

// From each stage to the one behind it; stages of one node use its links.
std::vector<double> transfers(const PlannedRun& run, const ScheduleTraits& traits) {
  const RunLayout& layout = run.layout;
  const double within = transfer_seconds(run, {run.cluster, {2, 2}}),
               across = transfer_seconds(run, {run.cluster, {2, 1}});
  const int near = layout.pipe_group.per_node;
  std::vector<double> all(layout.stages.size());
  for (size_t stage = 0; stage + 1 < all.size(); ++stage) {
    const int from = owner_of_stage(traits.placement, layout.pipe, static_cast<int>(stage));
    const int to = owner_of_stage(traits.placement, layout.pipe, static_cast<int>(stage) + 1);
    if (from != to) all[stage] = from / near == to / near ? within : across;
  }
  return all;
}

// How many ranks a host of shared cores has for each of its cores; 0 elsewhere.
double ranks_per_core(const PlannedRun& run) {
  const DeviceGroup& devices = run.cluster.devices.front();
  if (!devices.shared_cores) return 0;
  const int nodes = std::max(run.cluster.num_nodes(), 1);
  const double ranks = (run.layout.num_ranks() + nodes - 1) / nodes;
  return ranks / devices.per_node;
}

PipelineQuestion question_of(const PlannedRun& run, const ScheduleTraits& traits,
                             const std::vector<StageFacts>& stages) {
  const bool megatron = run.formulas == FormulaSet::Megatron;
  PipelineQuestion question;
  question.schedule = traits.name;
  question.request.ranks = run.layout.pipe;
  question.request.microbatches = run.layout.microbatches;
  question.request.chunks = run.layout.chunks;
  question.request.group = run.spec.pipeline.group;
  const std::vector<double> to_next = transfers(run, traits);
  question.transfer = *std::ranges::max_element(to_next);
  if (const double crowd = ranks_per_core(run); crowd > 1) question.cores = run.layout.pipe / crowd;
  if (megatron && traits.splits_backward) question.end = StepEnd::PostValidated;
  for (size_t i = 0; i < stages.size(); ++i) {
    const StagePasses& passes = stages[i].passes;
    // Megatron-LM's ranks compute nothing while they send or receive, as tests/sim/published_steps_test.cpp shows.
    const double waited = megatron ? to_next[i] + (i > 0 ? to_next[i - 1] : 0) : 0;
    question.stages.push_back(
        {passes.forward.total() + waited, passes.input_grad.total() + waited, passes.weight_grad.total()});
    question.held.push_back(stages[i].held);
  }
  return question;
}

// That holds the last stage; the first rank, where each end of a mirrored pipeline holds both.
int last_rank(const RunLayout& layout, const ScheduleTraits& traits) {
  if (traits.placement == StagePlacement::Mirrored) return 0;
  return owner_of_stage(traits.placement, layout.pipe, static_cast<int>(layout.stages.size()) - 1);
}

// That an asynchronous pipeline keeps: those that microbatches in flight use (Narayanan et al., "PipeDream", 2019;
// "PipeDream-2BW", 2021), and beside them the next one while an update makes it (param/weight_versions.h).
int weight_versions(const PlannedRun& run, const ScheduleTraits& traits, int rank) {
  if (!traits.asynchronous()) return 1;
  const bool vertical = run.spec.pipeline.weights == StageWeights::Vertical;
  const int of_flight = traits.versions == VersionRule::DoubleBuffered ? 2 : run.layout.pipe - (vertical ? 0 : rank);
  return std::min(of_flight, num_updates(run)) + 1;
}

// Under ZeRO 3 a block's weights are there while it runs, and the next one's come.
double exchanged_bytes(const PlannedRun& run, const RankShare& share) {
  if (run.formulas == FormulaSet::Braid) return exchange_buffer_bytes(run, share);
  if (run.spec.sync.zero < 3 || share.blocks == 0) return 0;
  return 2 / std::max(share.blocks, 2.0) * share.parameters.count() * element_bytes(run.spec.train.dtype);
}
// Of all devices, whatever they compute.
double best_rate(const RunSpec& spec, const Cluster& cluster) {
  double rate = 0;
  for (const DeviceGroup& group : cluster.devices) {
    rate += static_cast<double>(group.num_devices()) * DeviceRates(group, spec.train.dtype).best_rate();
  }
  return rate;
}

// The devices that have ranks, the first ones; cores that ranks share are all in use.
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

}  // namespace

bool alike_but_for_zero(const RunSpec& a, const RunSpec& b) {
  SyncSpec sync = a.sync;
  sync.zero = b.sync.zero;
  sync.zero_group = b.sync.zero_group;
  // What a search varies first.
  return a.memory == b.memory && a.pipeline == b.pipeline && a.mesh == b.mesh && a.train == b.train && sync == b.sync &&
         a.model == b.model && a.data == b.data && a.optimizer == b.optimizer && a.checkpoint == b.checkpoint &&
         a.run == b.run;
}

PipelinedRun::PipelinedRun(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options)
    : spec_(spec),
      cluster_(with_cores_of_ranks(cluster, spec)),
      formulas_(options.formulas),
      layout_(layout_of(spec_, cluster_, formulas_)),
      rates_(rates_of(spec_, cluster_)),
      run_{spec_, cluster_, formulas_, layout_, rates_},
      traits_(*traits_of(spec_.pipeline)),
      crowd_(ranks_per_core(run_)),
      step_flops_(tokens_of_step(spec) * model_flops_per_token(spec.model, formulas_)),
      used_(devices_in_use(spec, cluster)) {
  const std::vector<StageFacts> stages = stage_facts(run_);
  shares_ = rank_shares(run_, traits_, stages);
  const PipelineOutcome outcome = pipeline_outcome(question_of(run_, traits_, stages), options.pipeline);
  pipelined_.seconds = pipeline_seconds(outcome);
  pipelined_.bubble = outcome.seconds > 0 ? std::max(0.0, 1 - outcome.busiest_seconds / outcome.seconds) : 0;
  for (const double bytes : outcome.held_bytes)
    pipelined_.memory.push_back({.activations = static_cast<int64_t>(bytes)});
  pipelined_.bound_step_seconds = step_flops_ / best_rate(spec, cluster);
  pipelined_.memory_bytes = static_cast<int64_t>(cluster_.least_memory_bytes());
}

StepSeconds PipelinedRun::pipeline_seconds(const PipelineOutcome& outcome) const {
  const auto seconds_of = [](const RankShare& share) { return share.passes.all().total(); };
  const PassSeconds each = std::ranges::max_element(shares_, {}, seconds_of)->passes.all();
  // Of the microbatches' passes at full speed; who shares cores is slower.
  const double times = crowd_ > 1 ? outcome.busiest_seconds / each.total() : layout_.microbatches;
  StepSeconds seconds;
  seconds.compute = times * each.compute;
  seconds.tensor = times * each.tensor;
  seconds.context = times * each.context;
  const double idle = outcome.seconds - times * each.total();
  if (idle > kSumError * outcome.seconds) seconds.pipeline = idle;
  return seconds;
}

void PipelinedRun::add_exchanges(StepSeconds& seconds) const {
  const int updates = num_updates(run_);
  for (size_t rank = 0; rank < shares_.size(); ++rank) {
    if (rank > 0 && shares_[rank] == shares_[rank - 1]) continue;
    seconds.data = std::max(seconds.data, updates * data_seconds(run_, shares_[rank]));
    const double update = std::max(crowd_, 1.0) * optimizer_seconds(run_, shares_[rank]);
    seconds.optimizer = std::max(seconds.optimizer, updates * update);
  }
  seconds.data += tied_seconds(run_, last_rank(layout_, traits_));
}

void PipelinedRun::add_states(Prediction& prediction) const {
  const double two_tensors = layout_.pipe > 1 ? 2 * tensor_bytes(run_) : 0;
  const double passed = formulas_ == FormulaSet::Braid ? passed_bytes(run_) : two_tensors;
  double most_offloaded = 0;
  for (int rank = 0; rank < layout_.pipe; ++rank) {
    const RankShare& share = shares_[rank];
    const StageParameters& parameters = share.parameters;
    const StateBytes bytes = held_bytes(spec_, layout_, formulas_, parameters);
    const bool stays = spec_.memory.offload == OffloadTo::None;
    const double moments = (stays ? bytes.optimizer : 0) + replication_bytes(spec_) * parameters.count();
    RankMemory& memory = prediction.memory[rank];
    memory.parameters = static_cast<int64_t>(weight_versions(run_, traits_, rank) * bytes.weights);
    memory.gradients = static_cast<int64_t>(bytes.gradients);
    memory.moments = static_cast<int64_t>(moments);
    memory.communication = static_cast<int64_t>(passed + exchanged_bytes(run_, share) + parameters.shared.reduced.kept +
                                                parameters.experts.reduced.kept);
    if (!stays) most_offloaded = std::max(most_offloaded, bytes.optimizer);
  }
  prediction.offloaded_bytes = static_cast<int64_t>(layout_.all_ranks.per_node * most_offloaded);
  if (spec_.memory.offload == OffloadTo::Host) prediction.host_bytes = static_cast<int64_t>(cluster_.host.bytes);
}

Prediction PipelinedRun::with_zero(int zero, int zero_group) {
  spec_.sync.zero = zero;
  spec_.sync.zero_group = zero_group;
  Prediction prediction = pipelined_;
  add_exchanges(prediction.seconds);
  add_states(prediction);
  prediction.sync_bytes =
      num_updates(run_) * sync_bytes(run_, shares_.front()) + tied_bytes(run_, last_rank(layout_, traits_));
  prediction.tokens_per_second_per_device = tokens_of_step(spec_) / prediction.step_seconds() / used_.count;
  prediction.mfu = step_flops_ / prediction.step_seconds() / used_.peak;
  return prediction;
}

}  // namespace braid
