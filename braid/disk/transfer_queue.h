// The system's side of a Disk: a queue of transfers between a file and memory. Knows nothing of order, retries or
// errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "braid/disk/disk.h"

namespace braid::disk {

struct Transfer {
  uint64_t id = 0;
  Direction direction = Direction::Read;
  int file = -1;  // descriptor
  int64_t offset = 0;
  std::byte* memory = nullptr;
  size_t bytes = 0;
};

struct Completion {
  uint64_t id = 0;
  int64_t result = 0;  // bytes transferred, which may be fewer than asked for, or -errno
  // When the transfer ended, in seconds of now_seconds(). Threads know it. io_uring only tells that it has ended: then
  // this is the time of the first call of the queue that finds it so.
  double ended = 0;
};

// One thread at a time calls. REQUIRES: no transfer is under way at the end.
class TransferQueue {
 public:
  virtual ~TransferQueue() = default;
  virtual void submit(const Transfer& transfer) = 0;
  // Waits for any transfer to end. REQUIRES: one is under way.
  virtual Completion next() = 0;
};

// Returns a queue of pread(2) and pwrite(2) on `threads` threads. Throws RunError if the system has no more threads.
std::unique_ptr<TransferQueue> make_thread_queue(int threads);

// Returns a queue of `depth` transfers through io_uring. Returns null if the system refuses it, with the reason in
// `why`.
std::unique_ptr<TransferQueue> make_uring_queue(int depth, std::string& why);

}  // namespace braid::disk
