// The disks keep the record. They know offsets; the tensors there say what is at an offset.
#include "braid/train/disk_record.h"

#include <algorithm>

#include "braid/param/disk_tensors.h"
#include "braid/param/swap_space.h"

namespace braid::train {
namespace {

schedule::DiskContent content_of(param::MemoryCategory category) {
  switch (category) {
    case param::MemoryCategory::Parameters:
      return schedule::DiskContent::Parameters;
    case param::MemoryCategory::Gradients:
      return schedule::DiskContent::Gradients;
    case param::MemoryCategory::Activations:
      return schedule::DiskContent::Activations;
    case param::MemoryCategory::Optimizer:
    case param::MemoryCategory::Communication:
    case param::MemoryCategory::Servers:
    case param::MemoryCategory::Snapshots:
    case param::MemoryCategory::Other:
      break;
  }
  return schedule::DiskContent::Optimizer;
}

}  // namespace

void DiskRecord::set_recording(disk::Recording recording) {
  if (param::DiskTensors* const tensors = model_.params().disk()) tensors->disk().set_recording(recording);
  if (param::SwapSpace* const activations = model_.activations_on_disk()) activations->disk().set_recording(recording);
}

void DiskRecord::begin() {
  bytes_before_ = model_.bytes_moved_on_disk();
  set_recording(disk::Recording::On);
}

int64_t DiskRecord::end() {
  set_recording(disk::Recording::Off);
  return model_.bytes_moved_on_disk() - bytes_before_;
}

std::vector<schedule::DiskTransfer> DiskRecord::transfers() const {
  std::vector<schedule::DiskTransfer> all;
  const auto add = [&](const disk::Disk& disk, const auto& category_at) {
    for (const disk::Moved& moved : disk.recorded()) {
      const bool reads = moved.direction == disk::Direction::Read;
      all.push_back({reads ? schedule::DiskDirection::Read : schedule::DiskDirection::Write,
                     content_of(category_at(moved.offset)), moved.bytes, moved.begin, moved.end});
    }
  };
  if (param::DiskTensors* const tensors = model_.params().disk()) {
    add(tensors->disk(), [&](int64_t offset) { return tensors->category_at(offset); });
  }
  if (param::SwapSpace* const activations = model_.activations_on_disk()) {
    add(activations->disk(), [](int64_t) { return param::MemoryCategory::Activations; });
  }
  std::ranges::stable_sort(all, {}, &schedule::DiskTransfer::begin);
  return all;
}

}  // namespace braid::train
