#include "braid/moves/faults.h"

#include <algorithm>

#include "braid/base/text.h"

namespace braid::moves {
namespace {

class TablePlayer {
 public:
  TablePlayer(const Trace& trace, const Table& table, int64_t capacity)
      : trace_(trace), table_(table), capacity_(capacity), needed_(trace.chunks.size(), kAbsent) {}

  std::vector<std::string> play() {
    for (const int chunk : table_.initial) needed_[chunk] = kHeld;
    check_capacity(-1);
    load_after(-1);
    for (int use = 0; use < table_.num_uses(); ++use) {
      for (const int chunk : trace_.uses[use % table_.uses_per_step].chunks) check_use(use, chunk);
      evict_after(use);
      load_after(use);
    }
    std::vector<int> last;
    for (int chunk = 0; chunk < std::ssize(needed_); ++chunk) {
      if (needed_[chunk] != kAbsent) last.push_back(chunk);
    }
    if (last != table_.initial) report("the chunks in memory at the end are not those of the beginning");
    const auto [num_evictions, num_loads] = moved_;
    if (num_evictions != std::ssize(table_.evictions)) report("an eviction is after no use, or not in order");
    if (num_loads != std::ssize(table_.loads)) report("a load is after no use, or not in order");
    return faults_;
  }

 private:
  static constexpr int kAbsent = -2, kHeld = -1;

  template <class... Parts>
  void report(const Parts&... parts) {
    faults_.push_back(cat(parts...));
  }

  void check_use(int use, int chunk) {
    const int needed = needed_[chunk];
    if (needed == kAbsent) report("use ", use, ": chunk ", chunk, " is not in memory");
    if (needed > use) report("use ", use, ": chunk ", chunk, " may still be loading, for use ", needed);
    if (needed >= 0 && needed < use) report("use ", use, ": chunk ", chunk, " is loaded for use ", needed);
    if (needed != kAbsent) needed_[chunk] = kHeld;
  }

  void evict_after(int use) {
    for (; moved_.evictions < std::ssize(table_.evictions); ++moved_.evictions) {
      const Eviction& eviction = table_.evictions[moved_.evictions];
      if (eviction.after != use) return;
      const std::string place = cat("eviction of chunk ", eviction.chunk, " after use ", use, ": ");
      if (needed_[eviction.chunk] == kAbsent) report(place, "it is not in memory");
      if (needed_[eviction.chunk] >= 0) report(place, "it was not used since it was loaded");
      if (eviction.fate != fate_of(trace_.chunks[eviction.chunk])) report(place, "only changed chunks are written");
      needed_[eviction.chunk] = kAbsent;
    }
  }

  void load_after(int use) {
    for (; moved_.loads < std::ssize(table_.loads); ++moved_.loads) {
      const Load& load = table_.loads[moved_.loads];
      if (load.after != use) return;
      const std::string place = cat("load of chunk ", load.chunk, " after use ", use, ": ");
      if (needed_[load.chunk] != kAbsent) report(place, "it is in memory");
      const int step = load.before - load.before % table_.uses_per_step;
      if (load.before <= use || use < step - 1) report(place, "use ", load.before, " is not in the step that follows");
      needed_[load.chunk] = load.before;
      check_capacity(use);
    }
  }

  void check_capacity(int use) {
    int64_t bytes = 0;
    for (size_t chunk = 0; chunk < needed_.size(); ++chunk) {
      bytes += needed_[chunk] == kAbsent ? 0 : trace_.chunks[chunk].bytes;
    }
    if (bytes > capacity_) report("after use ", use, ": ", bytes, " bytes exceed the capacity of ", capacity_);
  }

  const Trace& trace_;
  const Table& table_;
  const int64_t capacity_;
  std::vector<int> needed_;  // by chunk: the use for which it is being loaded, kHeld or kAbsent
  struct {
    std::ptrdiff_t evictions = 0, loads = 0;
  } moved_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> faults(const Trace& trace, const Table& table, int64_t capacity) {
  return TablePlayer(trace, table, capacity).play();
}

}  // namespace braid::moves
