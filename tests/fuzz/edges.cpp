// A table of counters by edge, the exclusive or of two program counters, after American Fuzzy Lop's: Zalewski,
// "Technical whitepaper for afl-fuzz" (2014), section 1. Two edges may share a counter: then one hides the other.
#include "tests/fuzz/edges.h"

#include <array>
#include <bit>
#include <cstdint>

namespace braid::fuzz {
namespace {

constexpr size_t kCounters = size_t{1} << 16;

struct Table {
  std::array<uint8_t, kCounters> hits{};    // since reset()
  std::array<uint16_t, kCounters> known{};  // bit b: that many hits, as bit_width, were seen
  uintptr_t previous = 0;
};
Table table;  // what the compiler's calls can reach
thread_local bool watched = false;

}  // namespace

void Edges::reset() {
  watched = true;
  table.hits.fill(0);
  table.previous = 0;
}

size_t Edges::take_new() {
  size_t found = 0;
  for (size_t i = 0; i < kCounters; ++i) {
    if (table.hits[i] == 0) continue;
    const auto bit = static_cast<uint16_t>(1u << std::bit_width(table.hits[i]));
    found += (table.known[i] & bit) == 0;
    table.known[i] |= bit;
  }
  return found;
}

void count_edge(uintptr_t place) {
  if (!watched) return;
  uint8_t& hits = table.hits[(place ^ table.previous) % kCounters];
  hits = static_cast<uint8_t>(hits + (hits < 255));
  table.previous = place >> 1;
}

}  // namespace braid::fuzz

// Called by the code of every edge of the components that are watched.
extern "C" void __sanitizer_cov_trace_pc() {
  braid::fuzz::count_edge(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
