// From a configuration to a list of blocks per stage.
#include "braid/train/measured_partition.h"

#include <cmath>

#include "braid/ckpt/checkpoint.h"
#include "braid/spec/partition.h"
#include "braid/train/resume.h"
#include "braid/train/stage_profile.h"
#include "braid/train/step_schedule.h"

namespace braid::train {
namespace {

// Returns the partition of the resumed run. Empty if it had another number of stages, or the checkpoint has none.
std::string saved_partition(const RunSpec& spec, int num_stages) {
  if (spec.train.resume.empty()) return "";
  const ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(spec.train.resume);
  if (info.config_toml.empty()) return "";
  const RunSpec saved = saved_spec(info, spec.train.resume);
  const auto blocks = spec::partition_list(saved.pipeline.partition);
  const bool fits = blocks && static_cast<int>(blocks->size()) == num_stages;
  return fits && saved.model.layers == spec.model.layers ? saved.pipeline.partition : "";
}

}  // namespace

plan::Partition best_partition(const RunSpec& spec, std::vector<plan::Unit> units) {
  plan::PartitionRequest request;
  request.units = std::move(units);
  request.holders = plan::holders(step_schedule(spec));
  request.speeds = spec.pipeline.speeds;
  request.limit_bytes = static_cast<int64_t>(std::ceil(std::ldexp(spec.memory.limit_gb, 30)));
  return plan::partition_units(request);
}

std::optional<plan::Partition> resolve_partition(RunSpec& spec, int threads) {
  if (!spec::is_measured(spec.pipeline)) return {};
  const int num_stages = step_schedule(spec).num_stages;
  spec.pipeline.partition = saved_partition(spec, num_stages);
  if (!spec.pipeline.partition.empty()) return {};
  const plan::Partition measured = best_partition(spec, profiled_units(spec, threads));
  spec.pipeline.partition = spec::partition_text(measured.first_unit);
  return measured;
}

}  // namespace braid::train
