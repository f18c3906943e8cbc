// Transfers through io_uring (io_uring(7)), by liburing.
#include "braid/disk/transfer_queue.h"

namespace braid::disk {

std::unique_ptr<TransferQueue> make_uring_queue(int depth, std::string& why) {
  why = "braid was built without liburing";
  return nullptr;
}

}  // namespace braid::disk
