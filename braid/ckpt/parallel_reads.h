// Reading with more than one request at hand: a disk that is asked for one thing at a time gives little.
// It knows no files.
#pragma once

#include <cstdint>
#include <functional>

namespace braid {

// Calls read(0) .. read(count - 1) on a few threads, in about that order, and returns when none is left. Throws what
// the lowest that failed threw; those behind it may not have been called.
void read_in_parallel(int64_t count, const std::function<void(int64_t number)>& read);

}  // namespace braid
