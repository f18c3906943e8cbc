// Scratch space on disks, for optimizer states, parameters and activations that do not fit in memory. Reads and writes
// are asynchronous. A caller that keeps several under way computes on one buffer while the disk works on others:
//
//   Ticket next = disk->read(0, buffers[0]);
//   for (size_t i = 0; i < n; ++i) {                      // chunk i uses buffer i mod 3
//     const Ticket current = next;
//     disk->wait(written[(i + 1) % 3]);                   // the buffer of chunk i + 1 is free
//     if (i + 1 < n) next = disk->read((i + 1) * bytes, buffers[(i + 1) % 3]);
//     disk->wait(current);
//     update(buffers[i % 3]);
//     written[i % 3] = disk->write(i * bytes, buffers[i % 3]);
//   }
//   disk->wait_all();
//
// The files have no name, so the system frees them when the process ends, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/base/errors.h"

namespace braid::disk {

// Offsets, sizes and addresses are multiples of this, in bytes, as direct I/O wants them. AlignedBuffer has such
// memory.
constexpr int64_t kBlockBytes = 4096;

enum class Checksums { Off, On };
enum class Engine { IoUring, Threads };
enum class Direction { Read, Write };
enum class Recording { Off, On };

struct Options {
  std::vector<std::string> folders;  // one file in each; stripes of 4 MiB go to them in turn
  int64_t bytes = 0;                 // size of the scratch space
  int depth = 8;                     // most operations under way at once in each folder
  Checksums checksums = Checksums::Off;
  std::optional<Engine> engine = {};  // nullopt: io_uring, or threads if the system refuses it
  std::string key = "memory.paths";   // configuration key of `folders`, for problems
};

// An operation. That of a Ticket{} has ended.
struct Ticket {
  uint64_t id = 0;
};

// An operation that has ended, or its part in a stripe of one of several folders.
struct Moved {
  Direction direction = Direction::Read;
  int64_t offset = 0, bytes = 0;
  double begin = 0;  // when it was handed to the system, in seconds of now_seconds()
  double end = 0;    // when all bytes were transferred, as far as the system tells (transfer_queue.h)
};

// Scratch space of a fixed size. Bytes that were never written read as 0. Operations on the same bytes take effect in
// the order of the calls, those on different bytes in any order. One thread at a time calls; it waits for its
// operations before it ends.
//
// Errors of the disk (EIO, ENOSPC, a file that ends early, a checksum that differs) are a RunError with folder, offset,
// size and the system's message. Only wait() and wait_all() throw it. After an error no operation is under way any
// more, and each later wait throws the same error.
class Disk {
 public:
  virtual ~Disk() = default;  // waits for all operations

  // Starts an operation on the bytes from `offset` on. If `depth` are under way, first waits for one of them. The
  // memory belongs to the operation until wait() returns or throws. REQUIRES: multiples of kBlockBytes; inside the
  // space.
  virtual Ticket read(int64_t offset, std::span<std::byte> to) = 0;
  virtual Ticket write(int64_t offset, std::span<const std::byte> from) = 0;

  // Returns when the operation has ended, with all of its bytes; at once if it was waited for before.
  virtual void wait(Ticket ticket) = 0;
  virtual void wait_all() = 0;
  // Like wait_all(), but leaves errors to the next wait: for destructors of the memory's owners.
  virtual void drain() noexcept = 0;

  // Reads all chunks that were written since the start and compares their checksums; without checksums, does nothing.
  // Throws like wait().
  virtual void check_written() = 0;

  // Maps bytes [offset, offset + bytes) of the space to `address`, in place of what is mapped there (mapping.h). Throws
  // RunError. REQUIRES: multiples of kBlockBytes; inside the space.
  virtual void map_at(std::byte* address, int64_t offset, int64_t bytes) = 0;

  // Takes `bytes`, which are at `offset` through a mapping, as written there: later reads are compared with them.
  // Without checksums, does nothing. REQUIRES: multiples of kBlockBytes; inside the space; no operation is under way.
  virtual void record_mapped(int64_t offset, std::span<const std::byte> bytes) = 0;

  // On: forgets the last record, and adds each operation that ends from now on to a new one. Off: ends the record.
  virtual void set_recording(Recording recording) = 0;
  // Returns the last record, in the order in which operations were seen to end.
  virtual std::vector<Moved> recorded() const = 0;

  virtual int64_t bytes_read() const = 0;  // by operations that have ended
  virtual int64_t bytes_written() const = 0;
  // Returns sentences for the user about slower ways that were taken: threads for io_uring, the page cache for direct
  // I/O. Constant.
  virtual std::vector<std::string> notes() const = 0;
};

// Returns what is wrong with the folders: missing, not writable, in memory (tmpfs), or without space.
std::vector<Problem> problems(const Options& options);

// Opens the files and reserves their space. Throws ConfigError with all problems.
std::unique_ptr<Disk> open(const Options& options);

}  // namespace braid::disk
