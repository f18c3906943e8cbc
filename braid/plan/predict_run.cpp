// The checks before a prediction, and lower bounds of a run. pipelined_run.h has the prediction itself.
#include "braid/plan/predict_run.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <ranges>
#include <vector>

#include "braid/base/text.h"
#include "braid/layout/state_blocks.h"
#include "braid/model/model_flops.h"
#include "braid/model/shape.h"
#include "braid/plan/block_work.h"
#include "braid/plan/model_states.h"
#include "braid/plan/pipelined_run.h"
#include "braid/plan/rank_shards.h"
#include "braid/plan/stage_passes.h"
#include "braid/plan/tier_bytes.h"
#include "braid/spec/partition.h"
#include "braid/spec/trained.h"

namespace braid::plan {
namespace {

// Returns the parts of a model that may be on different kinds of devices.
std::vector<StageLoad> parts_of(const StageLoad& all, size_t num_kinds) {
  if (num_kinds == 1) return {all};
  StageLoad blocks = all;
  blocks.embedding = blocks.head = false;
  return {blocks, {.embedding = true}, {.head = true}};
}

}  // namespace

double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas, AccountPtr account) {
  const Cluster seen = with_cores_of_ranks(cluster, spec);
  RunLayout layout = layout_on_one_stage(spec, seen, formulas, std::move(account));
  const std::vector<StageLoad> parts = parts_of(layout.stages[0], seen.devices.size());
  std::vector<double> least(parts.size(), std::numeric_limits<double>::infinity());
  layout.stages = parts;
  for (size_t kind = 0; kind < seen.devices.size(); ++kind) {
    for (StageLoad& part : layout.stages) part.devices = kind;
    const std::vector<StagePasses> passes = stage_passes(spec, layout, seen, formulas);
    for (size_t i = 0; i < parts.size(); ++i) least[i] = std::min(least[i], passes[i].all().total());
  }
  return layout.microbatches * std::accumulate(least.begin(), least.end(), 0.0) / spec.mesh.pipe;
}

int64_t least_rank_bytes(const RunSpec& run, const Cluster& cluster, FormulaSet formulas, AccountPtr account) {
  RunSpec spec = run;
  spec.sync.zero = sharded_stage(run);
  const RunLayout layout = layout_on_one_stage(spec, cluster, formulas, std::move(account));
  StateBytes bytes = held_bytes(spec, layout, formulas, stage_parameters(spec, layout, layout.stages[0]));
  bytes = in_memory(spec, bytes);
  return static_cast<int64_t>(bytes.total() / spec.mesh.pipe);
}

namespace {

// Returns the first type of a device that is as wide as `lacking`, or else its first type; "" if it has none.
std::string nearest_type(DType lacking, const std::vector<PeakRate>& peaks) {
  if (peaks.empty()) return "";
  const auto wide = [&](const PeakRate& peak) { return element_bytes(peak.type) == element_bytes(lacking); };
  const auto found = std::ranges::find_if(peaks, wide);
  return cat((found == peaks.end() ? peaks.front() : *found).type);
}

}  // namespace

double model_flops_per_token(const layout::ModelAccount& account, FormulaSet formulas) {
  const ModelSpec& model = account.spec;
  const double flops = account.flops_per_token;
  if (formulas != FormulaSet::Megatron) return flops;
  const double queries = static_cast<double>(model.heads) * model::head_width(model);
  double attention = 0;  // of forward and backward
  for (const int kind : account.kind_of_layer) {
    for (size_t part = 0; part < account.parts_of_layer(); ++part) {
      attention += 3 * account.parts[kind * account.parts_of_layer() + part].attention_flops.at(account.of_token);
    }
  }
  return flops + (12.0 * model.layers * queries * model.context - attention);
}

StepRange step_range(const Cluster& cluster, FormulaSet formulas) {
  if (cluster.rates == RatesFrom::Measured) return {};
  return formulas == FormulaSet::Braid ? StepRange{0.9, 2.2} : StepRange{0.8, 1.25};
}

std::vector<Problem> mesh_problems(const RunSpec& spec, const Cluster& cluster) {
  const int64_t ranks = num_ranks(spec.mesh), devices = cluster.num_devices();
  if (cluster.devices.front().shared_cores || ranks <= devices) return {};
  return {{"mesh.data", cat(spec.mesh.data),
           cat("must leave at most ", counted(devices, "rank"), ", the devices of ", cluster.name, ", not ", ranks),
           ""}};
}

std::optional<PipelineSpec> pipeline_like(const Schedule& table) {
  const auto has = [&](Op op) {
    return std::ranges::any_of(table.programs, [&](const Program& program) {
      return std::ranges::any_of(program, [&](const Action& action) { return action.op == op; });
    });
  };
  const bool splits = has(Op::InputGrad), updates = has(Op::Update);
  const int ranks = table.num_ranks();
  PipelineSpec spec;
  for (const ScheduleTraits& traits : schedule_traits()) {
    const int chunks = table.num_stages / ranks;
    if (traits.splits_backward != splits || traits.asynchronous() != updates) continue;
    if (chunks * ranks != table.num_stages || (traits.chunks != 0 && traits.chunks != chunks)) continue;
    if ((traits.placement == schedule::StagePlacement::Mirrored) != table.mirrored()) continue;
    const auto owns = [&](int stage) {
      return schedule::owner_of_stage(traits.placement, ranks, stage) == table.stage_rank[stage];
    };
    if (!std::ranges::all_of(std::views::iota(0, table.num_stages), owns)) continue;
    spec.schedule = traits.name;
    if (traits.chunks == 0) spec.chunks = chunks;
    return spec;
  }
  return std::nullopt;
}

std::vector<Problem> prediction_problems(const RunSpec& spec, const Cluster& cluster) {
  std::vector<Problem> found;
  if (!spec::traits_of(spec.pipeline)) {
    found.push_back({"pipeline.schedule", spec.pipeline.schedule, "must be a schedule with a name to be planned", ""});
  }
  for (const DeviceGroup& group : cluster.devices) {
    const auto is_ours = [&](const PeakRate& peak) { return peak.type == spec.train.dtype; };
    if (std::ranges::any_of(group.peaks, is_ours)) continue;
    found.push_back({"train.dtype", cat(spec.train.dtype),
                     cat("must be a type of which ", cluster.name, " says the peak of ", group.name),
                     nearest_type(spec.train.dtype, group.peaks)});
  }
  const DeviceGroup& first = cluster.devices.front();
  const auto other = std::ranges::find(cluster.devices, !first.shared_cores, &DeviceGroup::shared_cores);
  if (other != cluster.devices.end()) {
    found.push_back({"shared_cores", other->shared_cores ? "true" : "false",
                     cat("must be the same of all devices of ", cluster.name, ", not differ between ", first.name,
                         " and ", other->name),
                     first.shared_cores ? "true" : "false"});
  }
  const auto needs = [&](const char* key, Tier tier) {
    const bool lacks_host = tier == Tier::Host && cluster.host.bytes == 0;
    const bool lacks_disk = tier == Tier::Disk && cluster.disk.read_bytes_per_second == 0;
    if (!lacks_host && !lacks_disk) return;
    found.push_back({key, cat(tier), cat("needs a [", tier, "] in the cluster file, which ", cluster.name, " has not"),
                     "resident"});
  };
  needs("memory.optimizer", spec.memory.optimizer);
  needs("memory.gradients", spec.memory.gradients);
  needs("memory.parameters", spec.memory.parameters);
  needs("memory.activations", spec.memory.activations);
  if (spec.model.vocab <= 0) found.push_back({"model.vocab", "0", "must be given to be planned", ""});
  std::ranges::move(layout::state_block_problems(spec), std::back_inserter(found));
  return found;
}

Prediction predict_run(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options) {
  return PipelinedRun(spec, cluster, options).with_zero(spec.sync.zero, spec.sync.zero_group);
}

}  // namespace braid::plan
