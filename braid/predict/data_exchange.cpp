// Volumes over links, less what computation hides.
#include "braid/predict/data_exchange.h"

#include <algorithm>
#include <cmath>

#include "braid/spec/pipeline_stages.h"

namespace braid {
namespace {

struct Exchange {
  GroupLinks links;
  double weight_bytes = 0, gradient_bytes = 0;
  double forward = 0, backward = 0;  // seconds of one microbatch's passes
  double last_share = 1;             // of the bucket that nothing hides
  int microbatches = 1;
  bool overlaps = false;

  double gather() const { return links.all_gather_seconds(weight_bytes); }
  double scatter() const { return links.reduce_scatter_seconds(gradient_bytes); }
  // `seconds` behind `cover`.
  double exposed(double seconds, double cover) const {
    if (!overlaps) return seconds;
    return std::max(seconds - (1 - last_share) * cover, last_share * seconds);
  }
};

double step_seconds(const Exchange& x, int zero) {
  switch (zero) {
    case 0:
      return x.exposed(x.links.all_reduce_seconds(x.gradient_bytes), x.backward);
    case 1:
      return x.exposed(x.scatter(), x.backward) + x.gather();
    case 2:
      return x.microbatches * x.exposed(x.scatter(), x.backward) + x.gather();
    default:
      return x.microbatches * (x.exposed(x.gather(), x.forward) + x.exposed(x.gather() + x.scatter(), x.backward));
  }
}

// Bytes of a gradient's element on the wire.
double wire_bytes(const RunSpec& spec, double gradient) {
  const CompressionKind kind = spec.sync.compression;
  if (kind == CompressionKind::BFloat16 || kind == CompressionKind::Float16) return std::min(gradient, 2.0);
  return kind == CompressionKind::EightBit ? 1 : gradient;
}

bool overlaps(const RunSpec& spec, FormulaSet formulas) {
  return spec.sync.zero == 3 || (formulas == FormulaSet::Braid && spec.sync.overlap != OverlapChoice::Off);
}

// Copies of groups that shard are summed once more, over as many ranks as there are groups.
double copies_seconds(const RunLayout& layout, const Cluster& cluster, double shard_bytes, int shards) {
  const int copies = layout.gradient_group.size / std::max(shards, 1);
  if (copies <= 1) return 0;
  const int near = std::max(layout.gradient_group.per_node / shards, 1);
  return GroupLinks(cluster, {copies, near}).all_reduce_seconds(shard_bytes);
}

}  // namespace

int num_updates(const PlannedRun& run) {
  const ScheduleTraits& schedule = *traits_of(run.spec.pipeline);
  if (!schedule.asynchronous()) return 1;
  if (*schedule.versions != VersionRule::DoubleBuffered) return run.layout.microbatches;
  const int group = run.spec.pipeline.group > 0 ? run.spec.pipeline.group : run.layout.pipe;
  return std::max(run.layout.microbatches / group, 1);
}

double data_seconds(const PlannedRun& run, const RankShare& share) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  if (layout.gradient_group.size <= 1) return 0;
  const StateBytes bytes = state_bytes(spec.train.dtype, spec.optimizer.kind, formulas);
  const int zero = spec.sync.zero, shards = zero > 0 ? num_shards(spec, layout) : layout.gradient_group.size;
  const RankGroup group{shards, std::min(shards, layout.gradient_group.per_node)};
  Exchange x{GroupLinks(cluster, group)};
  x.weight_bytes = share.parameters * bytes.weights;
  x.gradient_bytes = share.parameters * wire_bytes(spec, bytes.gradients);
  x.forward = share.passes.forward.total();
  x.backward = share.passes.input_grad.total() + share.passes.weight_grad.total();
  x.last_share = 1 / std::max(share.blocks, 1.0);
  x.microbatches = layout.microbatches;
  x.overlaps = overlaps(spec, formulas);
  const double copies = zero > 0 ? copies_seconds(layout, cluster, x.gradient_bytes / shards, shards) : 0;
  return (step_seconds(x, zero) + copies) / std::max(spec.sync.period, 1);
}

double optimizer_seconds(const PlannedRun& run, const RankShare& share) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const StateBytes bytes = state_bytes(spec.train.dtype, spec.optimizer.kind, formulas);
  const double parameters = share.parameters / (spec.sync.zero > 0 ? num_shards(spec, layout) : 1);
  const double streamed = parameters * (bytes.weights + 3 * bytes.gradients + 2 * bytes.optimizer);
  return rates[share.devices].stream_seconds(streamed, parameters * bytes.optimizer) +
         GroupLinks(cluster, layout.all_ranks).all_reduce_seconds(sizeof(float));
}

double tied_bytes(const PlannedRun& run, int last_rank) {
  if (last_rank == 0) return 0;
  const double gradient = state_bytes(run.spec.train.dtype, run.spec.optimizer.kind, run.formulas).gradients;
  return tied_parameters(run.spec, run.layout) * gradient;
}

double tied_seconds(const PlannedRun& run, int last_rank) {
  const double bytes = tied_bytes(run, last_rank);
  const RankGroup pair{2, run.layout.pipe_group.across_nodes() ? 1 : 2};
  return bytes > 0 ? GroupLinks(run.cluster, pair).all_reduce_seconds(bytes) : 0;
}

double sync_bytes(const PlannedRun& run, const RankShare& share) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const int copies = layout.gradient_group.size, zero = spec.sync.zero;
  if (copies <= 1) return 0;
  const StateBytes bytes = state_bytes(spec.train.dtype, spec.optimizer.kind, formulas);
  const int shards = zero > 0 ? num_shards(spec, layout) : copies;
  const double one_way = (shards - 1.0) / shards;
  const double gradients = one_way * share.parameters * wire_bytes(spec, bytes.gradients);
  const double weights = one_way * share.parameters * bytes.weights;
  const double again = 2 * (copies - shards) / static_cast<double>(copies) / shards * share.parameters *
                       wire_bytes(spec, bytes.gradients);  // the sum of the groups that shard
  const int m = layout.microbatches;
  const double sent[] = {2 * gradients, gradients + weights, m * gradients + weights, m * (2 * weights + gradients)};
  return (sent[zero] + again) / std::max(spec.sync.period, 1);
}

}  // namespace braid
