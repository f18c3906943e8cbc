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
// thread's allocations are counted in no category and no peak. The limit of the rank (limit_memory) holds for them too.
class UncountedScope {
 public:
  UncountedScope();
  ~UncountedScope();
  UncountedScope(const UncountedScope&) = delete;

 private:
  bool before_;
};

// Memory of another allocator, counted like that of an UncountedScope while this lives. Throws MemoryError beyond the
// limit of this thread's rank.
class UncountedBytes {
 public:
  explicit UncountedBytes(int64_t bytes);
  ~UncountedBytes();
  UncountedBytes(const UncountedBytes&) = delete;

 private:
  const int rank_;
  const int64_t bytes_;
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

// Installs the allocator in LibTorch, once per process; later calls do nothing. REQUIRES: no other thread allocates
// tensors during the first call, so it comes before ranks start. Memory allocated before is not counted.
// Afterwards, an allocation that fails throws a MemoryError that gives its size.
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

// From now on, an allocation that would take the rank's account above `bytes` throws a MemoryError with the account by
// category; 0: no limit.
void limit_memory(int rank, int64_t bytes);
// Returns the bytes that the limit leaves to this thread's rank; without a limit or a rank, the largest number.
int64_t bytes_left();

// Accounts in memory that this process shares with the processes that it forks while this object lives. So the accounts
// of a rank's process can be read here, also after the process was killed. They begin as those of this process, which
// afterwards has its own ones again. REQUIRES: this process allocates for no rank meanwhile. Throws RunError.
class SharedAccounts {
 public:
  SharedAccounts();
  ~SharedAccounts();
  SharedAccounts(const SharedAccounts&) = delete;

 private:
  void* const own_;
};

MemoryUse memory_use(int rank);
int64_t held_bytes(int rank);  // returns the sum over all categories, now
// Returns the peak of all categories but Parameters since reset_memory_peak.
int64_t peak_beside_parameters(int rank);
// Describes what a rank holds now, by category: "3.0 MiB (gradients 3.0 MiB)".
std::string account_text(int rank);
std::string peak_text(int rank);   // the same of the peaks, which each category reaches at its own time
void reset_memory_peak(int rank);  // sets the peaks to the bytes in use now

}  // namespace braid::param
