// Axes laid out on nodes.
#include "braid/predict/run_layout.h"

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"
#include "braid/spec/model_shape.h"
#include "braid/spec/partition.h"
#include "braid/spec/pipeline_stages.h"

namespace braid {
namespace {

constexpr int kBraidAlignment = 1024;  // ParamStore::kAlign
constexpr Axis kBraidOrder[] = {Axis::Tensor, Axis::Context, Axis::Pipe, Axis::Expert, Axis::Data};
constexpr Axis kMegatronOrder[] = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data, Axis::Pipe};

int size_of(const MeshSpec& mesh, Axis axis) {
  switch (axis) {
    case Axis::Pipe:
      return mesh.pipe;
    case Axis::Data:
      return mesh.data;
    case Axis::Context:
      return mesh.context;
    case Axis::Expert:
      return mesh.expert;
    case Axis::Tensor:
      return mesh.tensor;
  }
  throw InternalError("an axis without a size");
}

// The ranks that differ along `axes`. Strides that do not divide a node are counted as if they did.
RankGroup group_of(const MeshSpec& mesh, AxisSet axes, int node_size, FormulaSet formulas) {
  RankGroup group;
  int64_t stride = 1;
  for (const Axis axis : formulas == FormulaSet::Braid ? kBraidOrder : kMegatronOrder) {
    const int size = size_of(mesh, axis);
    if (axes.has(axis)) {
      const int64_t near = std::max<int64_t>(node_size / stride, 1);
      group.size *= size;
      group.per_node *= static_cast<int>(std::min<int64_t>(size, near));
    }
    stride *= size;
  }
  return group;
}

std::vector<Recompute> policies_of(const MemorySpec& spec) {
  std::vector<Recompute> policies;
  for (const std::string& entry : recompute_entries(spec)) policies.push_back(recompute_policy(entry).value());
  return policies;
}

std::vector<StageLoad> stage_loads(const RunSpec& spec, int num_stages) {
  if (spec.pipeline.partition == "measured") {
    RunSpec cut = spec;
    cut.pipeline.partition = "even";
    return stage_loads(cut, num_stages);
  }
  const std::vector<int> first_unit = stage_units(spec, num_stages);
  const int head = num_units(spec.model.layers) - 1;
  const std::vector<Recompute> policies = policies_of(spec.memory);
  std::vector<StageLoad> loads(num_stages);
  for (int stage = 0; stage < num_stages; ++stage) {
    StageLoad& load = loads[stage];
    const int begin = first_unit[stage], end = first_unit[stage + 1];
    const int halves = std::min(end, head) - std::max(begin, 1);
    load.blocks = halves / 2.0;
    if (halves % 2 == 1) load.more_feeds = std::max(begin, 1) % 2 == 1 ? -1 : 1;  // units 1, 3, 5 .. are attention
    load.embedding = begin == 0;
    load.head = end > head;
    load.recompute = policies[policies.size() == 1 ? 0 : stage];
  }
  return loads;
}

// A host has as many ranks that share its cores as come to it.
int ranks_of_node(const RunSpec& spec, const Cluster& cluster) {
  const DeviceGroup& first = cluster.devices.front();
  if (!first.shared_cores) return first.per_node;
  const int64_t nodes = std::max(cluster.num_nodes(), 1);
  return static_cast<int>((num_ranks(spec.mesh) + nodes - 1) / nodes);
}

// Whether devices [begin, end) have a rank of pipeline rank `pipe`.
bool holds(const MeshSpec& mesh, FormulaSet formulas, int pipe, int64_t begin, int64_t end) {
  const int64_t inner = int64_t{mesh.tensor} * mesh.context, copies = num_ranks(mesh) / mesh.pipe / inner;
  for (int64_t copy = 0; copy < copies; ++copy) {
    const int64_t first =
        formulas == FormulaSet::Braid ? (copy * mesh.pipe + pipe) * inner : (pipe * copies + copy) * inner;
    if (first < end && first + inner > begin) return true;
  }
  return false;
}

// Of each pipeline rank the slowest kind that has a copy of its stages, by DeviceRates::best_rate().
std::vector<size_t> slowest_kinds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const int p = spec.mesh.pipe;
  std::vector<double> rates;
  for (const DeviceRates& one : rates_of(spec, cluster)) rates.push_back(one.best_rate());
  std::vector<size_t> kinds(p);
  std::vector<double> least(p, std::numeric_limits<double>::infinity());
  int64_t begin = 0;
  for (size_t kind = 0; kind < rates.size(); ++kind) {
    const int64_t end = begin + cluster.devices[kind].num_devices();
    for (int pipe = 0; pipe < p; ++pipe) {
      if (rates[kind] < least[pipe] && holds(spec.mesh, formulas, pipe, begin, end)) {
        least[pipe] = rates[kind], kinds[pipe] = kind;
      }
    }
    begin = end;
  }
  if (traits_of(spec.pipeline)->placement != StagePlacement::Mirrored) return kinds;
  std::vector<size_t> of_both = kinds;
  for (int pipe = 0; pipe < p; ++pipe) {
    if (least[p - 1 - pipe] < least[pipe]) of_both[pipe] = kinds[p - 1 - pipe];
  }
  return of_both;
}

// All but the stages.
RunLayout ranks_of(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const MeshSpec& mesh = spec.mesh;
  RunLayout layout{mesh.pipe, mesh.data, mesh.context, mesh.expert, mesh.tensor};
  layout.chunks = std::max(chunks_per_rank(spec.pipeline), 1);
  layout.microbatches = static_cast<int>(spec.train.batch / (spec.train.microbatch * num_replicas(mesh)));
  layout.tokens = static_cast<double>(spec.train.microbatch) * spec.model.context / mesh.context;
  layout.vocab = padded_vocab(spec.model, mesh.tensor);
  const int node_size = ranks_of_node(spec, cluster);
  const auto group = [&](AxisSet axes) { return group_of(mesh, axes, node_size, formulas); };
  layout.all_ranks = {layout.num_ranks(), std::min(layout.num_ranks(), node_size)};
  layout.tensor_group = group({Axis::Tensor});
  layout.context_group = group({Axis::Context});
  layout.expert_group = group({Axis::Expert});
  layout.pipe_group = group({Axis::Pipe});
  layout.gradient_group = group({Axis::Data, Axis::Context, Axis::Expert});
  layout.expert_gradient_group = group({Axis::Data, Axis::Context});
  const ScheduleTraits* schedule = traits_of(spec.pipeline);
  if (schedule && schedule->placement == StagePlacement::Mirrored) {
    layout.copies_in_pipe = 2;
    for (RankGroup* copies : {&layout.gradient_group, &layout.expert_gradient_group}) {
      copies->size *= 2;
      if (!layout.pipe_group.across_nodes()) copies->per_node *= 2;
    }
  }
  return layout;
}

}  // namespace

std::vector<DeviceRates> rates_of(const RunSpec& spec, const Cluster& cluster) {
  std::vector<DeviceRates> rates;
  for (const DeviceGroup& group : cluster.devices) rates.emplace_back(group, spec.train.dtype);
  return rates;
}

RunLayout layout_of(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  RunLayout layout = ranks_of(spec, cluster, formulas);
  if (formulas == FormulaSet::Braid) layout.aligned_to = kBraidAlignment;
  layout.stages = stage_loads(spec, layout.pipe * layout.chunks);
  if (cluster.devices.size() > 1) {
    const std::vector<size_t> kinds = slowest_kinds(spec, cluster, formulas);
    const StagePlacement placement = traits_of(spec.pipeline)->placement;
    for (size_t stage = 0; stage < layout.stages.size(); ++stage) {
      layout.stages[stage].devices = kinds[owner_of_stage(placement, layout.pipe, static_cast<int>(stage))];
    }
  }
  return layout;
}

RunLayout layout_on_one_stage(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  RunLayout layout = ranks_of(spec, cluster, formulas);
  const std::vector<Recompute> policies = policies_of(spec.memory);
  const bool alike = std::ranges::count(policies, policies[0]) == std::ssize(policies);
  layout.stages = {{.blocks = static_cast<double>(spec.model.layers),
                    .embedding = true,
                    .head = true,
                    .recompute = alike ? policies[0] : Recompute{}}};
  return layout;
}

}  // namespace braid
