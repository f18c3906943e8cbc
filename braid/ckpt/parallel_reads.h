// Reads with several requests in flight: a disk that gets one request at a time is slow.
#pragma once

#include <cstdint>
#include <functional>

namespace braid::ckpt {

inline constexpr int kReaders = 4;  // threads

// Calls read(number, reader) for numbers 0 .. count - 1, in about that order, and returns when none is left. Readers
// are 0 .. kReaders - 1; the calls of one come one after another. Throws what the lowest number that failed threw;
// those behind it may not have been called.
void read_in_parallel(int64_t count, const std::function<void(int64_t number, int reader)>& read);

}  // namespace braid::ckpt
