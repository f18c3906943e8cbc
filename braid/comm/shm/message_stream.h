// One rank's end of a ring of bytes between two processes.
#pragma once

#include <algorithm>
#include <cstring>

#include "braid/comm/shm/shared_world.h"

namespace braid::comm::shm {

// Bytes go in at one process and come out at the other, in order. One writer, one reader, neither waits.
class MessageStream {
 public:
  MessageStream(PairWords& words, std::byte* ring) : words_(words), ring_(ring) {}

  int64_t room() const { return PairWords::kRingBytes - (words_.written.load() - words_.read.load()); }
  int64_t filled() const { return words_.written.load() - words_.read.load(); }

  // Up to room() bytes, visible to the reader when this returns.
  void write(const void* from, int64_t bytes) {
    const int64_t begin = words_.written.load();
    const auto* source = static_cast<const std::byte*>(from);
    in_pieces(begin, bytes, [&](int64_t at, int64_t done, int64_t count) {
      std::memcpy(ring_ + at, source + done, static_cast<size_t>(count));
    });
    words_.written.store(begin + bytes);
  }

  // Up to filled() bytes; their room is the writer's when this returns.
  void read(void* to, int64_t bytes) {
    const int64_t begin = words_.read.load();
    auto* target = static_cast<std::byte*>(to);
    in_pieces(begin, bytes, [&](int64_t at, int64_t done, int64_t count) {
      std::memcpy(target + done, ring_ + at, static_cast<size_t>(count));
    });
    words_.read.store(begin + bytes);
  }

 private:
  // Two pieces where the stretch goes over the end of the ring.
  template <class Piece>
  static void in_pieces(int64_t begin, int64_t bytes, const Piece& piece) {
    for (int64_t done = 0; done < bytes;) {
      const int64_t at = (begin + done) % PairWords::kRingBytes;
      const int64_t count = std::min(bytes - done, PairWords::kRingBytes - at);
      piece(at, done, count);
      done += count;
    }
  }

  PairWords& words_;
  std::byte* const ring_;
};

}  // namespace braid::comm::shm
