// Transfers through io_uring (io_uring(7)), by liburing, if braid was built with it.
#include "braid/disk/transfer_queue.h"

#ifdef BRAID_URING
#include <liburing.h>

#include <cerrno>
#include <cstring>
#include <deque>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#endif

namespace braid::disk {

#ifdef BRAID_URING
namespace {

// Each submission is handed to the kernel at once, so that the disk works while the caller computes.
class UringQueue final : public TransferQueue {
 public:
  explicit UringQueue(io_uring ring) : ring_(ring) {}
  ~UringQueue() override { ::io_uring_queue_exit(&ring_); }
  UringQueue(const UringQueue&) = delete;

  void submit(const Transfer& transfer) override {
    take_ended();
    io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
    check(entry != nullptr, "the submission queue of io_uring has room");
    const auto bytes = static_cast<unsigned>(transfer.bytes);
    const auto offset = static_cast<uint64_t>(transfer.offset);
    if (transfer.direction == Direction::Read) {
      ::io_uring_prep_read(entry, transfer.file, transfer.memory, bytes, offset);
    } else {
      ::io_uring_prep_write(entry, transfer.file, transfer.memory, bytes, offset);
    }
    ::io_uring_sqe_set_data64(entry, transfer.id);
    int submitted = 0;
    do {  // EAGAIN, EBUSY: the kernel is short of memory for a moment
      submitted = ::io_uring_submit(&ring_);
    } while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
    check(submitted == 1, "io_uring takes a transfer");
  }

  Completion next() override {
    take_ended();
    if (ended_.empty()) {
      io_uring_cqe* entry = nullptr;
      int waited = 0;
      do {
        waited = ::io_uring_wait_cqe(&ring_, &entry);
      } while (waited == -EINTR || waited == -EAGAIN);
      check(waited == 0, "io_uring completes a transfer");
      take_ended();
    }
    const Completion first = ended_.front();
    ended_.pop_front();
    return first;
  }

 private:
  // Does not wait. Called as often as possible, because completions have no time of their own.
  void take_ended() {
    for (io_uring_cqe* entry = nullptr; ::io_uring_peek_cqe(&ring_, &entry) == 0;) {
      ended_.push_back({entry->user_data, entry->res, now_seconds()});
      ::io_uring_cqe_seen(&ring_, entry);
    }
  }

  io_uring ring_;
  std::deque<Completion> ended_;  // not returned by next() yet
};

// Linux before 5.6 has io_uring without these two.
bool reads_and_writes(io_uring& ring) {
  io_uring_probe* const probe = ::io_uring_get_probe_ring(&ring);
  const bool found = probe != nullptr && ::io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                     ::io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  ::io_uring_free_probe(probe);
  return found;
}

}  // namespace

std::unique_ptr<TransferQueue> make_uring_queue(int depth, std::string& why) {
  io_uring ring{};
  if (const int result = ::io_uring_queue_init(static_cast<unsigned>(depth), &ring, IORING_SETUP_CLAMP); result != 0) {
    why = std::strerror(-result);
    return nullptr;
  }
  auto queue = std::make_unique<UringQueue>(ring);
  if (reads_and_writes(ring)) return queue;
  why = "this version of Linux is too old";
  return nullptr;
}
#else
std::unique_ptr<TransferQueue> make_uring_queue(int, std::string& why) {
  why = "braid was built without liburing";
  return nullptr;
}
#endif

}  // namespace braid::disk
