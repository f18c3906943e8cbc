// A storage that is resized to nothing and back. Source of the idea: PyTorch's FSDP, which does this to flat
// parameters.
#include "braid/param/releasable.h"

#include <ATen/native/Resize.h>

namespace braid {
namespace {

void resize(const at::Tensor& tensor, size_t bytes) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  if (storage->nbytes() != bytes) at::native::resize_bytes_cpu(storage, bytes);
}

}  // namespace

void release_memory(const at::Tensor& tensor) { resize(tensor, 0); }
void restore_memory(const at::Tensor& tensor) { resize(tensor, tensor.nbytes()); }

}  // namespace braid
