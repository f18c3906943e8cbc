// Frees memory by resizing a storage to nothing, and restores it by resizing the storage back. Source of the idea:
// PyTorch's FSDP, which does this to flat parameters.
#include "braid/param/releasable.h"

#include <ATen/native/Resize.h>

namespace braid::param {
namespace {

using c10::StorageImpl;

// Returns the flag that makes a storage refuse access to its data. LibTorch has a call that sets the flag, but none
// that clears it. An explicit instantiation may name a private member.
bool& refuses_data(StorageImpl& storage);
template <bool StorageImpl::*Flag>
struct PrivateFlag {
  friend bool& refuses_data(StorageImpl& storage) { return storage.*Flag; }
};
template struct PrivateFlag<&StorageImpl::throw_on_immutable_data_ptr_>;

StorageImpl& storage_of(const at::Tensor& tensor) { return *tensor.storage().unsafeGetStorageImpl(); }

}  // namespace

void release_memory(const at::Tensor& tensor, const std::string& why) {
  StorageImpl& storage = storage_of(tensor);
  if (refuses_data(storage)) return;
  at::native::resize_bytes_cpu(&storage, 0);
  storage.set_nbytes(tensor.nbytes());  // so that views of the tensor can still be made
  storage.release_data_and_set_meta_custom_data_ptr_error_msg_(why);
}

void restore_memory(const at::Tensor& tensor) {
  StorageImpl& storage = storage_of(tensor);
  if (!refuses_data(storage)) return;
  refuses_data(storage) = false;
  storage.set_nbytes(0);
  try {
    at::native::resize_bytes_cpu(&storage, tensor.nbytes());  // reads the flag again
  } catch (...) {
    storage.set_nbytes(tensor.nbytes());
    refuses_data(storage) = true;
    throw;
  }
}

}  // namespace braid::param
