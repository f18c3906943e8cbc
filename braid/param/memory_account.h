// Bytes in use per rank and category, counted by a tagged CPU allocator. The tag is in a header of each block. So if
// another thread frees a block, its bytes are subtracted from the rank that allocated it.
#pragma once

#include <c10/core/Allocator.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace braid::param {

// A scope that keeps allocations outside of a run, such as a measurement's, out of the account. While it is alive, this
// thread's allocations are counted for no rank. Blocks that the thread frees are still subtracted from the rank for
// which they were counted.
class UncountedScope {
 public:
  UncountedScope();
  ~UncountedScope();
  UncountedScope(const UncountedScope&) = delete;

 private:
  int rank_before_;
};

// The pass in which a block runs.
enum class Phase { Forward, Backward };

// Categories of memory. Servers: memory of parameter servers, counted for the rank that started them. Snapshots: copies
// that are saved while training continues.
enum class MemoryCategory { Parameters, Gradients, Optimizer, Activations, Communication, Servers, Snapshots, Other };
inline constexpr int kNumMemoryCategories = 8;
std::string text(MemoryCategory category);

struct MemoryUse {
  std::array<int64_t, kNumMemoryCategories> bytes{};       // in use now
  std::array<int64_t, kNumMemoryCategories> peak_bytes{};  // each category's own peak since reset_memory_peak
  int64_t peak_total_bytes = 0;                            // peak of the sum
};

// Installs the allocator in LibTorch, once per process; later calls do nothing. Memory allocated before is not counted.
// Afterwards, an allocation that fails throws a RunError that gives its size.
void install_memory_accounting();

// Counts this thread's allocations for `rank` from now on; check() fails unless it is 0 .. 1023. Allocations of threads
// that never call this are not counted.
void account_memory_to(int rank);
// Returns the rank for which this thread's allocations are counted, if any.
std::optional<int> accounted_rank();

// Returns the category of memory that the accounting allocator has made; nothing for other memory.
std::optional<MemoryCategory> category_of(const c10::DataPtr& memory);

// A scope that sets the category of this thread's allocations. Scopes nest. The default category is Other.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryCategory category);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;

 private:
  MemoryCategory before_;
};

// From now on, an allocation that would take the rank's account above `bytes` throws a RunError with the account by
// category; 0: no limit.
void limit_memory(int rank, int64_t bytes);

MemoryUse memory_use(int rank);
// Returns the peak of all categories but Parameters since reset_memory_peak.
int64_t peak_beside_parameters(int rank);
// Describes what a rank holds now, by category: "3.0 MiB (gradients 3.0 MiB)".
std::string account_text(int rank);
void reset_memory_peak(int rank);  // sets the peaks to the bytes in use now

}  // namespace braid::param
