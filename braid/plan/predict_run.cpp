// The checks before anything is counted; pipelined_run.h has the rest.
#include "braid/plan/predict_run.h"

#include <algorithm>
#include <ranges>

#include "braid/base/text.h"
#include "braid/plan/block_work.h"
#include "braid/plan/pipelined_run.h"
#include "braid/spec/model_flops.h"
#include "braid/spec/model_shape.h"
#include "braid/spec/pipeline_stages.h"

namespace braid::plan {
namespace {

// Returns the device's type that is as wide as a type that it lacks, or its first.
std::string nearest_type(DType lacking, const std::vector<PeakRate>& peaks) {
  if (peaks.empty()) return "";
  const auto wide = [&](const PeakRate& peak) { return element_bytes(peak.type) == element_bytes(lacking); };
  const auto found = std::ranges::find_if(peaks, wide);
  return cat((found == peaks.end() ? peaks.front() : *found).type);
}

}  // namespace

double model_flops_per_token(const ModelSpec& model, FormulaSet formulas) {
  const double flops = spec::model_flops_per_token(model);
  if (formulas != FormulaSet::Megatron) return flops;
  const double queries = static_cast<double>(model.heads) * spec::head_width(model);
  return flops + 12.0 * model.layers * queries * (model.context - spec::mean_tokens_seen(model));
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
  const auto needs = [&](OffloadTo place, const char* table, bool there) {
    if (spec.memory.offload != place || there) return;
    found.push_back({"memory.offload", cat(place),
                     cat("needs a [", table, "] in the cluster file, which ", cluster.name, " has not"), "none"});
  };
  needs(OffloadTo::Host, "host", cluster.host.bytes > 0);
  needs(OffloadTo::Disk, "disk", cluster.disk.read_bytes_per_second > 0);
  if (spec.model.vocab <= 0) found.push_back({"model.vocab", "0", "must be given to be planned", ""});
  return found;
}

Prediction predict_run(const RunSpec& spec, const Cluster& cluster, const PredictOptions& options) {
  return PipelinedRun(spec, cluster, options).with_zero(spec.sync.zero, spec.sync.zero_group);
}

}  // namespace braid::plan
