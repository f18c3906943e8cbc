// Putting the parts of a prediction together.
#include "braid/predict/predict_run.h"

#include <algorithm>
#include <numeric>

#include "braid/base/text.h"
#include "braid/predict/activation_memory.h"
#include "braid/predict/block_work.h"
#include "braid/predict/data_exchange.h"
#include "braid/predict/pipeline_estimate.h"
#include "braid/spec/model_flops.h"
#include "braid/spec/model_shape.h"
#include "braid/spec/pipeline_stages.h"
#include "braid/spec/thread_count.h"

namespace braid {
namespace {

double tokens_of_step(const RunSpec& spec) { return static_cast<double>(spec.train.batch) * spec.model.context; }

// What the parts of a prediction look at.
struct Setting : PlannedRun {
  const ScheduleTraits& traits;
  std::vector<StagePasses> passes;  // of stages
  std::vector<RankShare> shares;    // of pipeline ranks

  bool megatron() const { return formulas == FormulaSet::Megatron; }
};

std::vector<RankShare> rank_shares(const Setting& at) {
  const int p = at.layout.pipe;
  const bool mirrored = at.traits.placement == StagePlacement::Mirrored;
  std::vector<RankShare> shares(p);
  const auto add = [&](int rank, size_t stage, double share_of_passes) {
    RankShare& share = shares[rank];
    share.parameters += stage_parameters(at.spec, at.layout, at.layout.stages[stage]);
    share.blocks += at.layout.stages[stage].blocks;
    share.passes.forward += share_of_passes * at.passes[stage].forward;
    share.passes.input_grad += share_of_passes * at.passes[stage].input_grad;
    share.passes.weight_grad += share_of_passes * at.passes[stage].weight_grad;
  };
  for (size_t stage = 0; stage < at.passes.size(); ++stage) {
    const int rank = rank_of_stage(at.traits, p, static_cast<int>(stage));
    add(rank, stage, mirrored ? 0.5 : 1);
    if (mirrored) add(p - 1 - rank, stage, 0.5);
  }
  return shares;
}

// What Megatron-LM's host does around an exchange before its device computes again: the transfers of Qi et al. 2023,
// table 9, less their bytes over the link.
constexpr double kMegatronStallSeconds = 3e-4;

// One tensor from the stage to the one behind it; stages of one node use its links. Megatron-LM sends a part of it from
// each tensor rank and gathers them in the node (Narayanan et al. 2021, section 4.1); with sequence parallelism each
// has its part alone.
double transfer_seconds(const Setting& at, size_t stage) {
  if (at.layout.pipe == 1 || stage + 1 >= at.passes.size()) return 0;
  const int from = rank_of_stage(at.traits, at.layout.pipe, static_cast<int>(stage));
  const int to = rank_of_stage(at.traits, at.layout.pipe, static_cast<int>(stage) + 1);
  if (from == to) return 0;
  const int near = at.layout.pipe_group.per_node;
  const GroupLinks links(at.cluster, {2, from / near == to / near ? 2 : 1});
  const double bytes = element_bytes(at.spec.train.dtype) * at.layout.tokens * at.spec.model.width;
  const bool in_parts = at.megatron() || at.spec.mesh.sequence_parallel;
  const double sent =
      links.send_seconds(in_parts ? bytes / at.layout.tensor : bytes) + (at.megatron() ? kMegatronStallSeconds : 0);
  if (!in_parts || at.spec.mesh.sequence_parallel) return sent;
  return sent + GroupLinks(at.cluster, at.layout.tensor_group).all_gather_seconds(bytes);
}

PipelineQuestion question_of(const Setting& at) {
  const RunLayout& layout = at.layout;
  PipelineQuestion question;
  question.schedule = at.traits.name;
  question.request.ranks = layout.pipe;
  question.request.microbatches = layout.microbatches;
  question.request.chunks = layout.chunks;
  question.request.group = at.spec.pipeline.group;
  for (size_t i = 0; i < at.passes.size(); ++i) {
    question.transfer = std::max(question.transfer, transfer_seconds(at, i));
  }
  if (at.megatron() && at.traits.splits_backward) question.end = StepEnd::PostValidated;
  for (size_t i = 0; i < at.passes.size(); ++i) {
    const StagePasses& stage = at.passes[i];
    // Megatron-LM's ranks compute nothing while they send or receive, as tests/sim/published_steps_test.cpp shows.
    const double both = transfer_seconds(at, i) + (i > 0 ? transfer_seconds(at, i - 1) : 0);
    const double waited = at.megatron() ? both : 0;
    question.stages.push_back(
        {stage.forward.total() + waited, stage.input_grad.total() + waited, stage.weight_grad.total()});
    const StageLoad& load = layout.stages[i];
    const double ends = end_bytes(at.spec, layout, load);
    question.held.push_back({load.blocks * saved_bytes(at.spec, layout, load.recompute, at.formulas) + ends,
                             load.blocks * pending_bytes(at.spec, layout)});
  }
  return question;
}

// How many ranks a host of shared cores has for each of its cores; at most 1 elsewhere.
double ranks_per_core(const Setting& at) {
  const DeviceGroup& devices = at.cluster.devices.front();
  if (!devices.shared_cores) return 0;
  const int nodes = std::max(at.cluster.num_nodes(), 1);
  const double ranks = (at.layout.num_ranks() + nodes - 1) / nodes;
  return ranks / devices.per_node;
}

// That holds the last stage; the first rank, where each end of a mirrored pipeline holds both.
int last_rank(const Setting& at) {
  if (at.traits.placement == StagePlacement::Mirrored) return 0;
  return rank_of_stage(at.traits, at.layout.pipe, static_cast<int>(at.passes.size()) - 1);
}

StepSeconds seconds_of(const Setting& at, const PipelineOutcome& outcome) {
  const auto busiest = std::max_element(at.shares.begin(), at.shares.end(), [](const auto& a, const auto& b) {
    return a.passes.all().total() < b.passes.all().total();
  });
  const PassSeconds each = busiest->passes.all();
  const int m = at.layout.microbatches;
  StepSeconds seconds;
  seconds.compute = m * each.compute;
  seconds.tensor = m * each.tensor;
  seconds.context = m * each.context;
  double pipeline = std::max(outcome.seconds, m * each.total());
  const double crowd = ranks_per_core(at);
  if (crowd > 1) {
    double all = 0;
    for (const RankShare& share : at.shares) all += m * share.passes.all().compute;
    pipeline = std::max(pipeline, crowd * all / at.layout.pipe + seconds.tensor + seconds.context);
    seconds.compute = std::min(crowd * seconds.compute, pipeline - seconds.tensor - seconds.context);
  }
  seconds.pipeline = pipeline - seconds.compute - seconds.tensor - seconds.context;
  for (const RankShare& share : at.shares) {
    seconds.data = std::max(seconds.data, data_seconds(at, share));
    seconds.optimizer = std::max(seconds.optimizer, std::max(crowd, 1.0) * optimizer_seconds(at, share));
  }
  seconds.data += tied_seconds(at, last_rank(at));
  return seconds;
}

// That an asynchronous pipeline keeps (Narayanan et al., "PipeDream", 2019; "PipeDream-2BW", 2021).
int weight_versions(const ScheduleTraits& traits, int pipe, int rank) {
  if (!traits.asynchronous()) return 1;
  return traits.versions == VersionRule::DoubleBuffered ? 2 : pipe - rank;
}

// Under ZeRO 3 a block's weights are there while it runs, and the next one's come.
double gathered_bytes(const Setting& at, const RankShare& share) {
  if (at.spec.sync.zero < 3 || share.blocks == 0) return 0;
  return 2 / std::max(share.blocks, 2.0) * share.parameters * element_bytes(at.spec.train.dtype);
}

std::vector<RankMemory> memory_of(const Setting& at, const PipelineOutcome& outcome) {
  const RunLayout& layout = at.layout;
  const StateBytes bytes = sharded(state_bytes(at.spec.train.dtype, at.spec.optimizer.kind, at.formulas),
                                   at.spec.sync.zero, num_shards(at.spec, layout));
  std::vector<RankMemory> ranks(layout.pipe);
  std::vector<double> working(layout.pipe);
  for (size_t stage = 0; stage < layout.stages.size(); ++stage) {
    double& most = working[rank_of_stage(at.traits, layout.pipe, static_cast<int>(stage))];
    most = std::max(most, working_bytes(at.spec, layout, layout.stages[stage], at.formulas));
  }
  const double tensor = element_bytes(at.spec.train.dtype) * layout.tokens * at.spec.model.width;
  for (int rank = 0; rank < layout.pipe; ++rank) {
    const RankShare& share = at.shares[rank];
    RankMemory& memory = ranks[rank];
    const int versions = weight_versions(at.traits, layout.pipe, rank);
    memory.parameters = static_cast<int64_t>(versions * share.parameters * bytes.weights);
    memory.gradients = static_cast<int64_t>(share.parameters * bytes.gradients);
    memory.moments = static_cast<int64_t>(share.parameters * bytes.optimizer);
    memory.activations = static_cast<int64_t>(outcome.held_bytes[rank] + working[rank]);
    memory.communication = static_cast<int64_t>((layout.pipe > 1 ? 2 * tensor : 0) + gathered_bytes(at, share));
  }
  return ranks;
}

double bound_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  double rate = 0;
  for (const DeviceGroup& group : cluster.devices) {
    rate += static_cast<double>(group.num_devices()) * DeviceRates(group, spec.train.dtype).best_rate();
  }
  return tokens_of_step(spec) * model_flops_of_token(spec.model, formulas) / rate;
}

// Of the devices that have ranks, the first ones.
double peak_of_ranks(const RunSpec& spec, const Cluster& cluster) {
  int64_t left = num_ranks(spec.mesh);
  double peak = 0;
  for (const DeviceGroup& group : cluster.devices) {
    const int64_t taken = group.shared_cores ? group.num_devices() : std::min(left, group.num_devices());
    peak += static_cast<double>(taken) * DeviceRates(group, spec.train.dtype).peak();
    left = std::max<int64_t>(left - taken, 0);
  }
  return peak;
}

Prediction prediction_on(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options) {
  Setting at{{spec, cluster, options.formulas}, *traits_of(spec.pipeline), {}, {}};
  at.passes = stage_passes(spec, at.layout, cluster, options.formulas);
  at.shares = rank_shares(at);
  const PipelineOutcome outcome = pipeline_outcome(question_of(at), options.pipeline);
  Prediction prediction;
  prediction.seconds = seconds_of(at, outcome);
  prediction.bubble = outcome.seconds > 0 ? std::max(0.0, 1 - outcome.busiest_seconds / outcome.seconds) : 0;
  prediction.memory = memory_of(at, outcome);
  prediction.sync_bytes = sync_bytes(at, at.shares.front()) + tied_bytes(at, last_rank(at));
  prediction.tokens_per_second_per_device = tokens_of_step(spec) / prediction.step_seconds() / at.layout.num_ranks();
  return prediction;
}

}  // namespace

Cluster with_cores_of_ranks(Cluster cluster, const RunSpec& spec) {
  DeviceGroup& group = cluster.devices.front();
  if (!group.shared_cores) return cluster;
  const int64_t nodes = std::max(cluster.num_nodes(), 1);
  const int64_t ranks = (num_ranks(spec.mesh) + nodes - 1) / nodes;
  const int64_t share = std::max<int64_t>(group.per_node / ranks, 1);
  const auto threads = threads_per_rank(spec, static_cast<int>(cluster.num_devices()));
  const auto cores = static_cast<double>(std::min<int64_t>(share, threads));
  for (PeakRate& peak : group.peaks) peak.flops *= cores;
  group.memory_bytes_per_second *= cores;
  for (StreamRate& row : group.streams) row.bytes_per_second *= cores;
  for (AttentionRate& row : group.attention) row.forward *= cores, row.backward *= cores;
  group.memory_bytes *= static_cast<double>(share);
  return cluster;
}

double model_flops_of_token(const ModelSpec& model, FormulaSet formulas) {
  const double flops = model_flops_per_token(model);
  if (formulas == FormulaSet::Braid) return flops;
  const double queries = static_cast<double>(model.heads) * head_width(model);
  return flops + 12.0 * model.layers * queries * (model.context - mean_tokens_seen(model));
}

std::vector<Problem> prediction_problems(const RunSpec& spec, const Cluster& cluster) {
  std::vector<Problem> found;
  const int64_t ranks = num_ranks(spec.mesh), devices = cluster.num_devices();
  const bool shared = !cluster.devices.empty() && cluster.devices.front().shared_cores;
  if (!shared && ranks > devices) {
    found.push_back({"mesh.data", cat(spec.mesh.data),
                     cat("must leave at most ", devices, " ranks, the devices of ", cluster.name, ", not ", ranks),
                     ""});
  }
  if (!traits_of(spec.pipeline)) {
    found.push_back({"pipeline.schedule", spec.pipeline.schedule, "must be a schedule with a name to be planned", ""});
  }
  for (const DeviceGroup& group : cluster.devices) {
    const auto is_ours = [&](const PeakRate& peak) { return peak.type == spec.train.dtype; };
    if (std::ranges::any_of(group.peaks, is_ours)) continue;
    found.push_back({"train.dtype", cat(spec.train.dtype),
                     cat("must be a type of which ", cluster.name, " says the peak of ", group.name),
                     group.peaks.empty() ? "" : cat(group.peaks.front().type)});
  }
  if (spec.model.vocab <= 0) found.push_back({"model.vocab", "0", "must be given to be planned", ""});
  return found;
}

Prediction predict_run(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options) {
  const Cluster seen = with_cores_of_ranks(cluster, spec);
  Prediction prediction = prediction_on(spec, seen, options);
  prediction.bound_step_seconds = bound_seconds(spec, cluster, options.formulas);
  const double peak = peak_of_ranks(spec, cluster);
  prediction.mfu =
      tokens_of_step(spec) * model_flops_of_token(spec.model, options.formulas) / prediction.step_seconds() / peak;
  prediction.memory_bytes = static_cast<int64_t>(seen.devices.front().memory_bytes);
  for (const DeviceGroup& group : cluster.devices) {
    if (!group.shared_cores) {
      prediction.memory_bytes = std::min(prediction.memory_bytes, static_cast<int64_t>(group.memory_bytes));
    }
  }
  return prediction;
}

}  // namespace braid
