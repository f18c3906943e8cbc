// Bytes in use per rank and category, counted by a tagged CPU allocator: the tag travels in a header of each block, so
// a block freed on another thread is taken off the rank that allocated it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace braid {

// Servers: what parameter servers keep, of the rank that started them.
enum class MemoryCategory { Parameters, Gradients, Optimizer, Activations, Communication, Servers, Other };
inline constexpr int kNumMemoryCategories = 7;
std::string text(MemoryCategory category);

struct MemoryUse {
  std::array<int64_t, kNumMemoryCategories> bytes{};       // now
  std::array<int64_t, kNumMemoryCategories> peak_bytes{};  // each category's own peak since reset_memory_peak
  int64_t peak_total_bytes = 0;                            // peak of the sum
};

// Installs the allocator under LibTorch, once per process; later calls do nothing. Memory allocated before is not
// counted.
void install_memory_accounting();

// From now on this thread allocates for `rank` (0 .. 1023). Another rank is our mistake (check). Threads that never say
// count nowhere.
void account_memory_to(int rank);
// The rank that this thread allocates for; none: it counts nowhere.
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

}  // namespace braid
