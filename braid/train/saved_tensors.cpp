// Names the tensors of a checkpoint, and chooses those that are read.
#include "braid/train/saved_tensors.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/mesh/element_blocks.h"
#include "braid/mesh/flat_range.h"
#include "braid/train/conversion_memory.h"

namespace braid::train {
namespace {

// Returns true for the names of ReplicaLife::state() and own_prefix(). They are the names with a "/" that do not begin
// with the name of an optimizer state.
bool is_of_replication(const std::string& name, optim::Optimizer& optimizer) {
  const std::vector<optim::OptimizerState>& states = optimizer.states();
  return !ckpt::is_weight(name) && std::none_of(states.begin(), states.end(), [&](const optim::OptimizerState& state) {
    return name.starts_with(state.name + "/") || name.starts_with(cat(state.name, kScales, "/"));
  });
}

// Lists the rank's shards of one parameter.
class Listing {
 public:
  explicit Listing(const param::Parameter& param) : param_(param) {}

  // Adds the parameter's part of `flat`, which is 1-D and has elements [first, last) of the flat buffers.
  void add(const std::string& prefix, int64_t first, int64_t last, const at::Tensor& flat) {
    const int64_t begin = std::max(first, param_.offset) - param_.offset;
    const int64_t end = std::min(last, param_.offset + param_.num_elements()) - param_.offset;
    if (begin >= end) return;
    for (const mesh::Fragment& part : mesh::fragments(param_.placement, begin, end)) {
      const int64_t at = param_.offset + part.begin - first;
      const at::Tensor local = flat.narrow(0, at, mesh::num_elements(part.placement.local_shape));
      tensors.push_back({prefix + param_.name, part.placement, local.view(part.placement.local_shape)});
    }
  }

  // Adds the scales of the parameter's part. `scales` are those of elements [first, last).
  void add_scales(const std::string& prefix, int64_t first, int64_t last, const at::Tensor& scales) {
    const int64_t begin = std::max(first, param_.offset) - param_.offset;
    const int64_t end = std::min(last, param_.offset + param_.num_elements()) - param_.offset;
    if (begin >= end) return;
    const mesh::Placement blocks = mesh::placement_of_blocks(param_.placement, kStateBlock);
    const int64_t end_block = (end + kStateBlock - 1) / kStateBlock, before = (first - param_.offset) / kStateBlock;
    for (const mesh::Fragment& part : mesh::fragments(blocks, begin / kStateBlock, end_block)) {
      const mesh::Index& shape = part.placement.local_shape;
      const at::Tensor local = scales.narrow(0, part.begin - before, mesh::num_elements(shape));
      tensors.push_back({prefix + param_.name, part.placement, local.view(shape)});
    }
  }

  std::vector<ckpt::PlacedTensor> tensors;

 private:
  const param::Parameter& param_;
};

// Returns this rank's parts of the frozen parameters, in the type that layers use.
std::vector<ckpt::PlacedTensor> frozen_tensors(const param::ParamStore& store) {
  std::vector<ckpt::PlacedTensor> tensors;
  for (const param::Parameter& param : store.frozen()) {
    Listing listing(param);
    for (const param::HeldRange& range : store.frozen_data().held()) {
      listing.add("", range.begin, range.end, range.data);
    }
    std::move(listing.tensors.begin(), listing.tensors.end(), std::back_inserter(tensors));
  }
  return tensors;
}

}  // namespace

std::vector<ckpt::PlacedTensor> saved_tensors(const param::ParamStore& store,
                                              const std::vector<optim::OptimizerState>& states,
                                              sync::ReplicaLife& replicas) {
  const std::string own = replicas.own_prefix();
  std::vector<ckpt::PlacedTensor> tensors;
  for (const param::Parameter& param : store.params()) {
    Listing listing(param);
    const auto add = [&](const std::string& whose) {
      for (const param::OwnedRange& range : store.owned()) listing.add(whose, range.begin, range.end, range.master);
      for (const optim::OptimizerState& state : states) {
        for (const optim::StateStretch& stretch : state.stretches) {
          const auto [range, begin, end, place] = stretch;
          listing.add(whose + state.name + "/", begin, end, state.flat.narrow(0, place, end - begin));
          if (!state.scales.defined()) continue;
          const at::Tensor scales = state.scales.narrow(0, place / kStateBlock, (end - begin) / kStateBlock);
          listing.add_scales(cat(whose, state.name, kScales, "/"), begin, end, scales);
        }
      }
    };
    add("");
    if (!own.empty()) add(own);
    std::move(listing.tensors.begin(), listing.tensors.end(), std::back_inserter(tensors));
  }
  for (ckpt::PlacedTensor& placed : frozen_tensors(store)) tensors.push_back(std::move(placed));
  for (sync::ReplicationState& state : replicas.state()) tensors.push_back({state.name, state.placement, state.local});
  return tensors;
}

std::vector<ckpt::PlacedTensor> weight_tensors(const param::ParamStore& store) {
  std::vector<ckpt::PlacedTensor> tensors = frozen_tensors(store);
  for (const param::Parameter& param : store.params()) {
    Listing listing(param);
    for (const param::OwnedRange& range : store.owned()) listing.add("", range.begin, range.end, range.master);
    std::move(listing.tensors.begin(), listing.tensors.end(), std::back_inserter(tensors));
  }
  return tensors;
}

std::vector<ckpt::PlacedTensor> tensors_to_save(std::vector<ckpt::PlacedTensor> tensors,
                                                const std::string& own_prefix) {
  if (own_prefix.empty()) return tensors;
  std::set<std::string> own;
  for (const ckpt::PlacedTensor& placed : tensors) {
    if (placed.name.starts_with(own_prefix)) own.insert(placed.name.substr(own_prefix.size()));
  }
  std::erase_if(tensors, [&](const ckpt::PlacedTensor& placed) { return own.contains(placed.name); });
  return tensors;
}

std::vector<ckpt::PlacedTensor> on_host(std::vector<ckpt::PlacedTensor> tensors) {
  for (ckpt::PlacedTensor& placed : tensors) placed.local = placed.local.cpu();
  return tensors;
}

namespace {

// Keeps the last tensor of each memory. A replica's own tensors come after tensors of the same memory under plain
// names, which are the first replica's. The own ones are read.
std::vector<ckpt::PlacedTensor> last_of_each_memory(std::vector<ckpt::PlacedTensor> tensors) {
  std::set<const void*> later;
  std::vector<ckpt::PlacedTensor> kept;
  for (auto placed = tensors.rbegin(); placed != tensors.rend(); ++placed) {
    if (placed->local.numel() == 0 || later.insert(placed->local.const_data_ptr()).second) kept.push_back(*placed);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

std::vector<ckpt::PlacedTensor> in_saved_types(std::vector<ckpt::PlacedTensor> tensors, const ckpt::Manifest& manifest,
                                               const std::optional<param::DiskSpace>& space) {
  const auto converts = [](at::ScalarType type) {
    return type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
  };
  tensors = on_host(std::move(tensors));
  std::vector<at::Tensor*> to_read;
  std::vector<FlatShape> shapes;
  for (ckpt::PlacedTensor& placed : tensors) {
    const auto saved = manifest.tensors.find(placed.name);
    if (saved == manifest.tensors.end()) continue;
    const at::ScalarType type = ckpt::scalar_type(saved->second.type), own = placed.local.scalar_type();
    if (type == own || !converts(type) || !converts(own)) continue;
    to_read.push_back(&placed.local);
    shapes.push_back({placed.local.numel(), type});
  }
  const std::vector<at::Tensor> memory = conversion_memory(shapes, space);
  for (size_t i = 0; i < memory.size(); ++i) *to_read[i] = memory[i].view(to_read[i]->sizes());
  return tensors;
}

void take_read(const std::vector<ckpt::PlacedTensor>& read, const std::vector<ckpt::PlacedTensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].local.is_same(read[i].local)) tensors[i].local.copy_(read[i].local);
  }
}

void load_tensors(const CheckpointSource& from, std::vector<ckpt::PlacedTensor> tensors, optim::Optimizer& optimizer,
                  Communicator& world) {
  const ckpt::Manifest manifest = ckpt::read_manifest(ckpt::found_directory(from.directory));
  if (!manifest.info.counters.contains(kReplicasApart)) {
    std::erase_if(tensors, [&](const ckpt::PlacedTensor& placed) {
      return is_of_replication(placed.name, optimizer) && !manifest.tensors.contains(placed.name);
    });
  }
  tensors = last_of_each_memory(std::move(tensors));
  const auto read = in_saved_types(tensors, manifest, from.conversions);
  ckpt::load_in_one_pass(from.directory, read, world);
  take_read(read, tensors);
}

}  // namespace braid::train
