#include "braid/train/disk_spaces.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "braid/optim/element_rule.h"
#include "braid/param/flat_data.h"
#include "braid/param/memory_account.h"
#include "braid/plan/block_work.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/spec/early_updates.h"

namespace braid::train {
namespace {

constexpr int64_t kLeastSwapSpace = int64_t{16} << 20;  // small tensors of many sizes leave gaps

param::Kept kept(Tier tier) { return tier == Tier::Disk ? param::Kept::OnDisk : param::Kept::InMemory; }

// Returns the folders of what the run has on disk.
disk::Options disk_place(const RunSpec& spec) {
  disk::Options place;
  place.folders = spec.memory.paths;
  place.checksums = disk::Checksums::On;
  if (spec.memory.paths.empty()) {
    std::filesystem::create_directories(spec.train.out);
    place.folders = {spec.train.out};
    place.key = "train.out";
  }
  return place;
}

// Adds the bytes of kSliceAlign elements of each tensor of a state.
void add_state(const RunSpec& spec, std::vector<int64_t>& tensors) {
  if (spec.optimizer.state_dtype == StateType::Int8) {  // codes and scales
    tensors.insert(tensors.end(), {param::kSliceAlign, param::kSliceAlign / kStateBlock * int64_t{sizeof(float)}});
    return;
  }
  const double of_master = std::max(plan::element_bytes(spec.train.dtype), double{sizeof(float)});
  tensors.push_back(std::llround(state_element_bytes(spec.optimizer.state_dtype, of_master) * param::kSliceAlign));
}

}  // namespace

std::optional<param::DiskSpace> disk_space(const RunSpec& spec, int num_microbatches) {
  if (spec.memory.optimizer != Tier::Disk) return std::nullopt;
  param::DiskSpace space;
  space.parameters = kept(spec.memory.parameters);
  space.gradients = kept(spec.memory.gradients);
  space.copies = spec::speculates(spec) ? param::Copies::Two : param::Copies::One;
  space.num_microbatches = num_microbatches;
  space.place = disk_place(spec);
  for (int i = 0; i < optim::element_rule(spec.optimizer).num_states(); ++i) add_state(spec, space.state_bytes);
  // With masters, gradients and rounded weights.
  space.place.depth = kChunksInMemory * (static_cast<int>(space.state_bytes.size()) + 3);
  space.chunk_bytes = std::llround(std::ldexp(spec.memory.chunk_mb, 20));
  return space;
}

int64_t swap_bytes(RunSpec spec) {
  if (spec.memory.activations != Tier::Disk) return 0;
  spec.memory.activations = Tier::Resident;
  auto prediction = plan::nominal_prediction(spec);
  if (!prediction) {  // a schedule that is a file; GPipe keeps the most
    spec.pipeline.schedule = "gpipe";
    spec.pipeline.chunks = 1;
    prediction = plan::nominal_prediction(spec);
  }
  const int64_t most = prediction ? prediction->fullest().activations : 0;
  return most + most / 4 + kLeastSwapSpace;
}

std::shared_ptr<param::SwapSpace> swap_space(const RunSpec& spec) {
  const int64_t bytes = swap_bytes(spec);
  if (bytes == 0) return nullptr;
  param::install_memory_accounting();  // says which memory is activations
  param::SwapOptions options{.place = disk_place(spec)};
  options.place.bytes = bytes;
  return std::make_shared<param::SwapSpace>(options);
}

}  // namespace braid::train
