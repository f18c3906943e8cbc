#include "braid/module/activations_on_disk.h"

#include <unordered_set>

namespace braid {
namespace {

param::SwapOptions swap_options(const ActivationsOnDisk::Options& options) {
  disk::Options place;
  place.folders = options.folders;
  place.bytes = options.bytes;
  place.checksums = disk::Checksums::On;
  place.key = "activations.folders";
  return {place, options.window_bytes, options.window_bytes};
}

param::SavedGraph::Moves all_but(const std::vector<at::Tensor>& stays) {
  std::unordered_set<const c10::StorageImpl*> memory;
  for (const at::Tensor& tensor : stays) {
    if (tensor.defined()) memory.insert(tensor.storage().unsafeGetStorageImpl());
  }
  return [memory = std::move(memory)](const c10::Storage& storage) {
    return !memory.contains(storage.unsafeGetStorageImpl());
  };
}

}  // namespace

ActivationsOnDisk::ActivationsOnDisk(const Options& options)
    : space_(std::make_shared<param::SwapSpace>(swap_options(options))) {}

ActivationsOnDisk::Forward::Forward(std::shared_ptr<param::SwapSpace> space, const std::vector<at::Tensor>& stays)
    : graph_(std::move(space), all_but(stays)), scope_(graph_) {}

}  // namespace braid
