// The placement of the mesh's axes on nodes.
#include "braid/plan/run_layout.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "braid/model/shape.h"
#include "braid/spec/activation_blocks.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/masking.h"
#include "braid/spec/partition.h"
#include "braid/spec/rank_hosts.h"
#include "braid/spec/trained.h"

namespace braid::plan {
namespace {

constexpr mesh::Axis kBraidOrder[] = {mesh::Axis::Tensor, mesh::Axis::Context, mesh::Axis::Pipe, mesh::Axis::Expert,
                                      mesh::Axis::Data};
constexpr mesh::Axis kMegatronOrder[] = {mesh::Axis::Tensor, mesh::Axis::Context, mesh::Axis::Expert, mesh::Axis::Data,
                                         mesh::Axis::Pipe};

// Returns the group of ranks that differ along `axes`. A stride that does not divide a node counts as if it did.
RankGroup group_of(const mesh::DeviceMesh& mesh, mesh::AxisSet axes, int node_size, FormulaSet formulas) {
  RankGroup group;
  int64_t stride = 1;
  for (const mesh::Axis axis : formulas == FormulaSet::Braid ? kBraidOrder : kMegatronOrder) {
    const int size = mesh.size(axis);
    if (axes.has(axis)) {
      const int64_t near = std::max<int64_t>(node_size / stride, 1);
      group.size *= size;
      group.per_node *= static_cast<int>(std::min<int64_t>(size, near));
    }
    stride *= size;
  }
  return group;
}

std::vector<spec::Recompute> policies_of(const MemorySpec& spec) {
  std::vector<spec::Recompute> policies;
  for (const std::string& entry : spec::recompute_entries(spec))
    policies.push_back(spec::recompute_policy(entry).value());
  return policies;
}

// Returns the load of the units `begin` to `end`, not included, of those between embedding and head.
StageLoad units_load(const layout::ModelAccount& account, int begin, int end) {
  const int parts = static_cast<int>(account.parts_of_layer());
  StageLoad load{.blocks = static_cast<double>(end - begin) / parts,
                 .parts = std::vector<double>(account.parts.size())};
  for (int unit = begin, layer = begin / parts, part = begin % parts; unit < end; ++unit) {  // divisions are slow here
    ++load.parts[account.kind_of_layer[layer] * parts + part];
    if (++part == parts) part = 0, ++layer;
  }
  if (end > begin) load.last_kind = account.kind_of_layer[(end - 1) / parts];
  return load;
}

std::vector<StageLoad> stage_loads(const RunSpec& spec, const layout::ModelAccount& account, int num_stages) {
  if (spec::is_measured(spec.pipeline)) {
    RunSpec cut = spec;
    cut.pipeline.partition = "even";
    return stage_loads(cut, account, num_stages);
  }
  const std::vector<int> first_unit = spec::stage_units(spec, num_stages);
  const int head = model::num_units(spec.model) - 1;
  const std::vector<spec::Recompute> policies = policies_of(spec.memory);
  const std::vector<StageBackward> backwards = spec::stage_backwards(spec, num_stages);
  std::vector<StageLoad> loads(num_stages);
  for (int stage = 0; stage < num_stages; ++stage) {
    StageLoad& load = loads[stage];
    const int begin = first_unit[stage], end = first_unit[stage + 1];
    load = units_load(account, std::max(begin, 1) - 1, std::min(end, head) - 1);
    load.embedding = begin == 0;
    load.head = end > head;
    load.recompute = policies[policies.size() == 1 ? 0 : stage];
    if (load.recompute.is_by_segments() || !is_resident(spec.memory.activations)) {
      load.order = placed_blocks(account, std::max(begin, 1) - 1, std::min(end, head) - 1);
    }
    load.on_tier = spec::blocks_on_tier(spec.memory, stage, static_cast<int>(load.order.size()));
    if (!backwards.empty()) load.backward = backwards[stage];
  }
  return loads;
}

// The smallest and largest number of ranks on a node that the run uses.
struct NodeSizes {
  int least = 1, most = 1;
};

// Returns the sizes of nodes. If ranks share cores, a node has all ranks that are placed on it, however many its cores.
NodeSizes node_sizes(const RunSpec& spec, const Cluster& cluster) {
  const int64_t ranks = num_ranks(spec.mesh);
  const DeviceGroup& first = cluster.devices.front();
  const int near = first.shared_cores ? ranks_of_node(spec, cluster) : first.per_node;
  NodeSizes sizes{near, near};
  if (first.shared_cores) return sizes;
  int64_t before = 0;
  for (const DeviceGroup& group : cluster.devices) {
    if (before >= ranks) break;
    sizes = {std::min(sizes.least, group.per_node), std::max(sizes.most, group.per_node)};
    before += group.num_devices();
  }
  return sizes;
}

// Finds the kinds of devices on which a run's ranks are.
class KindsOfRanks {
 public:
  KindsOfRanks(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas)
      : mesh_(spec.mesh),
        formulas_(formulas),
        inner_(int64_t{mesh_.tensor} * mesh_.context),
        mirrored_(spec::traits_of(spec.pipeline)->placement == schedule::StagePlacement::Mirrored) {
    for (const DeviceRates& one : rates_of(spec, cluster)) rates_.push_back(one.best_rate());
    const int64_t sharing = node_sizes(spec, cluster).most;
    for (const DeviceGroup& group : cluster.devices) {
      ends_.push_back(ends_.back() + (group.shared_cores ? sharing * group.nodes : group.num_devices()));
    }
  }

  // Returns for each pipeline rank the slowest kind of device, by DeviceRates::best_rate(), that has a copy of its
  // stages in data ranks [begin, end).
  std::vector<size_t> slowest(int begin, int end) const {
    const int p = mesh_.pipe;
    std::vector<size_t> kinds(p);
    std::vector<double> least(p, std::numeric_limits<double>::infinity());
    for (int copy = begin * mesh_.expert; copy < end * mesh_.expert; ++copy) {
      for (int pipe = 0; pipe < p; ++pipe) {
        const int64_t first = first_rank(copy, pipe);
        for (size_t kind = 0; kind < rates_.size(); ++kind) {
          const bool is_there = first < ends_[kind + 1] && first + inner_ > ends_[kind];
          if (is_there && rates_[kind] < least[pipe]) least[pipe] = rates_[kind], kinds[pipe] = kind;
        }
      }
    }
    if (!mirrored_) return kinds;
    std::vector<size_t> of_both = kinds;
    for (int pipe = 0; pipe < p; ++pipe) {
      if (least[p - 1 - pipe] < least[pipe]) of_both[pipe] = kinds[p - 1 - pipe];
    }
    return of_both;
  }

 private:
  int64_t first_rank(int64_t copy, int64_t pipe) const {
    const int64_t copies = int64_t{mesh_.data} * mesh_.expert;
    return (formulas_ == FormulaSet::Braid ? copy * mesh_.pipe + pipe : pipe * copies + copy) * inner_;
  }

  const MeshSpec& mesh_;
  const FormulaSet formulas_;
  const int64_t inner_;
  const bool mirrored_;
  std::vector<double> rates_;
  std::vector<int64_t> ends_{0};  // kind k has ranks [ends_[k], ends_[k + 1])
};

void put_stages_on(const std::vector<size_t>& kinds, const RunSpec& spec, RunLayout& layout) {
  const schedule::StagePlacement placement = spec::traits_of(spec.pipeline)->placement;
  for (size_t stage = 0; stage < layout.stages.size(); ++stage) {
    layout.stages[stage].devices = kinds[schedule::owner_of_stage(placement, layout.pipe, static_cast<int>(stage))];
  }
}

AccountPtr counted(const RunSpec& spec, AccountPtr account) { return account ? std::move(account) : account_of(spec); }

// Returns the layout without its stages.
RunLayout ranks_of(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const MeshSpec& mesh = spec.mesh;
  RunLayout layout{mesh.pipe, mesh.data, mesh.context, mesh.expert, mesh.tensor};
  layout.chunks = std::max(spec::chunks_per_rank(spec.pipeline), 1);
  layout.microbatches = spec::num_microbatches(spec, spec::busiest_data_rank(spec));
  layout.tokens = static_cast<double>(spec.train.microbatch) * spec.model.context / mesh.context;
  layout.vocab = model::padded_vocab(spec.model, mesh.tensor);
  const auto [node_size, most] = node_sizes(spec, cluster);
  layout.most_of_node = std::min(layout.num_ranks(), most);
  const mesh::DeviceMesh sizes(mesh);
  const auto group = [&, near = node_size](mesh::AxisSet axes) { return group_of(sizes, axes, near, formulas); };
  layout.all_ranks = {layout.num_ranks(), std::min(layout.num_ranks(), node_size)};
  layout.tensor_group = group({mesh::Axis::Tensor});
  layout.context_group = group({mesh::Axis::Context});
  layout.expert_group = group({mesh::Axis::Expert});
  layout.pipe_group = group({mesh::Axis::Pipe});
  layout.gradient_group = group({mesh::Axis::Data, mesh::Axis::Context, mesh::Axis::Expert});
  layout.expert_gradient_group = group({mesh::Axis::Data, mesh::Axis::Context});
  const ScheduleTraits* schedule = spec::traits_of(spec.pipeline);
  if (schedule && schedule->placement == schedule::StagePlacement::Mirrored) {
    layout.copies_in_pipe = 2;
    for (RankGroup* copies : {&layout.gradient_group, &layout.expert_gradient_group}) {
      copies->size *= 2;
      if (!layout.pipe_group.across_nodes()) copies->per_node *= 2;
    }
  }
  return layout;
}

}  // namespace

std::vector<PlacedBlock> placed_blocks(const layout::ModelAccount& account, int begin, int end) {
  const int parts = static_cast<int>(account.parts_of_layer());
  std::vector<PlacedBlock> blocks;
  for (int unit = begin; unit < end; ++unit) {
    const size_t part = account.part_of(unit / parts, static_cast<size_t>(unit % parts));
    if (unit % parts == 0 || blocks.empty()) blocks.push_back({part, part});
    ++blocks.back().last;
  }
  return blocks;
}

ListedCounts listed_counts(const StageLoad& load) {
  ListedCounts counts;
  if (load.recompute.keeps != spec::Recompute::Keeps::Listed) return counts;
  for (const auto& segment : spec::recomputed_segments(load.recompute, static_cast<int>(load.order.size()))) {
    counts.blocks += segment.segment;
    ++counts.segments;
    counts.longest = std::max<double>(counts.longest, segment.segment);
  }
  return counts;
}

AccountPtr account_of(const RunSpec& spec) {
  return std::make_shared<const layout::ModelAccount>(layout::account_of(
      spec.model, spec::trained_graph(spec), spec::picked_fraction(spec), layout::sums_of(spec.train)));
}

int ranks_of_node(const RunSpec& spec, const Cluster& cluster) {
  const int64_t ranks = cluster.server_nodes > 0 ? num_ranks(spec.mesh) : spec::num_world_ranks(spec);
  return spec::most_ranks_of_host(ranks, cluster.num_nodes());
}

std::vector<DeviceRates> rates_of(const RunSpec& spec, const Cluster& cluster) {
  std::vector<DeviceRates> rates;
  for (const DeviceGroup& group : cluster.devices) rates.emplace_back(group, spec.train.dtype);
  return rates;
}

StageLoad layers_load(const layout::ModelAccount& account, int begin, int end) {
  const int parts = static_cast<int>(account.parts_of_layer());
  return units_load(account, begin * parts, end * parts);
}

void set_account(AccountPtr account, const MeshSpec& mesh, RunLayout& layout) {
  layout.account = std::move(account);
  layout.extents =
      layout::rank_extents(*layout.account, {layout.tokens, layout.tensor, layout.expert, layout::sequence_of(mesh)});
}

RunLayout layout_of(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas, AccountPtr account) {
  RunLayout layout = ranks_of(spec, cluster, formulas);
  set_account(counted(spec, std::move(account)), spec.mesh, layout);
  if (formulas == FormulaSet::Braid) layout.aligned_to = kBraidAlignment;
  layout.stages = stage_loads(spec, *layout.account, layout.pipe * layout.chunks);
  if (cluster.devices.size() > 1) {
    put_stages_on(KindsOfRanks(spec, cluster, formulas).slowest(0, spec.mesh.data), spec, layout);
  }
  return layout;
}

ReplicaLayouts replica_layouts(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas, AccountPtr account) {
  ReplicaLayouts replicas;
  replicas.each.push_back(layout_of(spec, cluster, formulas, std::move(account)));
  if (spec.mesh.data == 1 || (cluster.devices.size() == 1 && spec::has_equal_shares(spec.mesh))) return replicas;
  const RunLayout of_all = std::move(replicas.each.front());
  replicas.each.clear();
  const KindsOfRanks devices(spec, cluster, formulas);
  const std::vector<int> first = spec::first_microbatches(spec);
  std::map<std::pair<int, std::vector<size_t>>, size_t> known;
  for (int rank = 0; rank < spec.mesh.data; ++rank) {
    const int microbatches = first[rank + 1] - first[rank];
    const std::vector<size_t> kinds = devices.slowest(rank, rank + 1);
    const auto [found, is_new] = known.try_emplace({microbatches, kinds}, replicas.each.size());
    replicas.of_data_rank.push_back(found->second);
    if (!is_new) continue;
    RunLayout& layout = replicas.each.emplace_back(of_all);
    layout.microbatches = microbatches;
    put_stages_on(kinds, spec, layout);
  }
  return replicas;
}

RunLayout layout_on_one_stage(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas, AccountPtr account) {
  RunLayout layout = ranks_of(spec, cluster, formulas);
  set_account(counted(spec, std::move(account)), spec.mesh, layout);
  const std::vector<spec::Recompute> policies = policies_of(spec.memory);
  const bool alike = std::ranges::count(policies, policies[0]) == std::ssize(policies);
  StageLoad all = layers_load(*layout.account, 0, spec.model.layers);
  all.embedding = all.head = true;
  if (alike) all.recompute = policies[0];
  layout.stages = {std::move(all)};
  return layout;
}

}  // namespace braid::plan
