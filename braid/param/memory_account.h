// Bytes in use per rank and category, counted by a tagged CPU allocator: the tag travels in a header of each block, so
// a block freed on another thread is taken off the rank that allocated it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace braid::param {

// Keeps allocations beside a run, such as a measurement's, out of its memory account (memory_account.h).

// While alive, what this thread allocates is counted to no rank. What it frees is taken off whom it was counted to.
class UncountedScope {
 public:
  UncountedScope();
  ~UncountedScope();
  UncountedScope(const UncountedScope&) = delete;

 private:
  int rank_before_;
};

// The pass that a block runs.
enum class Phase { Forward, Backward };

// Servers: what parameter servers keep, of the rank that started them. Snapshots: copies that are saved while training
// goes on.
enum class MemoryCategory { Parameters, Gradients, Optimizer, Activations, Communication, Servers, Snapshots, Other };
inline constexpr int kNumMemoryCategories = 8;
std::string text(MemoryCategory category);

struct MemoryUse {
  std::array<int64_t, kNumMemoryCategories> bytes{};       // now
  std::array<int64_t, kNumMemoryCategories> peak_bytes{};  // each category's own peak since reset_memory_peak
  int64_t peak_total_bytes = 0;                            // peak of the sum
};

// Installs the allocator under LibTorch, once per process; later calls do nothing. Memory allocated before is not
// counted. Where there is no more of it, RunError says how much was asked for.
void install_memory_accounting();

// Counts what this thread allocates from here on to `rank`; check() fails unless it is 0 .. 1023. What threads allocate
// that never call it is not counted.
void account_memory_to(int rank);
// The rank that this thread allocates for, if its allocations are counted.
std::optional<int> accounted_rank();

// While alive, this thread's allocations are of `category`. Nests. The default is Other.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryCategory category);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;

 private:
  MemoryCategory before_;
};

MemoryUse memory_use(int rank);
void reset_memory_peak(int rank);  // peaks become what is in use now

}  // namespace braid::param
