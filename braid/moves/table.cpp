// A policy is played on demand, step after step, until the state of memory repeats. The steps in between say for each
// gap between two uses of a chunk if the chunk stays. The table follows from the gaps: a chunk that does not stay
// leaves right after the use before the gap, and returns as early as space allows.
#include "braid/moves/table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "braid/base/errors.h"

namespace braid::moves {
namespace {

constexpr int kMostSteps = 64;

struct Miss {
  int use;
  int chunk;
  auto operator<=>(const Miss&) const = default;
};

// Memory that loads a chunk when it is used.
class DemandCache {
 public:
  DemandCache(const Trace& trace, const Request& request, int64_t capacity)
      : trace_(trace), request_(request), capacity_(capacity), next_(trace), stamp_(trace.chunks.size(), 0) {}

  // Plays one step and returns its misses, in order.
  std::vector<Miss> play_step() {
    std::vector<Miss> misses;
    for (int use = 0; use < std::ssize(trace_.uses); ++use) play(use, misses);
    if (request_.step_end == StepEnd::Drop) held_.clear();
    return misses;
  }

  // Returns the chunks in memory. They determine all that follows: the order is the policy's.
  std::vector<int> state() const {
    std::vector<int> state = held_;
    const bool by_stamp = request_.policy != Policy::NextUse;
    std::sort(state.begin(), state.end(),
              [&](int a, int b) { return by_stamp && stamp_[a] != stamp_[b] ? stamp_[a] < stamp_[b] : a < b; });
    return state;
  }

 private:
  bool holds(int chunk) const { return std::find(held_.begin(), held_.end(), chunk) != held_.end(); }

  void play(int use, std::vector<Miss>& misses) {
    const std::vector<int>& used = trace_.uses[use].chunks;
    int64_t bytes = bytes_of(trace_.chunks, held_);
    for (const int chunk : used) bytes += holds(chunk) ? 0 : trace_.chunks[chunk].bytes;
    while (bytes > capacity_) {
      const int leaves = victim(use);
      bytes -= trace_.chunks[leaves].bytes;
      std::erase(held_, leaves);
    }
    ++clock_;
    for (const int chunk : used) {
      const bool missed = !holds(chunk);
      if (missed) held_.push_back(chunk);
      if (missed) misses.push_back({use, chunk});
      if (missed || request_.policy == Policy::LeastRecent) stamp_[chunk] = clock_;
    }
  }

  int victim(int use) const {
    std::vector<int> movable;
    for (const int chunk : held_) {
      const std::vector<int>& used = trace_.uses[use].chunks;
      if (!std::binary_search(used.begin(), used.end(), chunk)) movable.push_back(chunk);
    }
    check(!movable.empty(), "the capacity holds the chunks of every use");
    if (request_.policy == Policy::NextUse) return next_.farthest(movable, use);
    return *std::min_element(movable.begin(), movable.end(),
                             [&](int a, int b) { return stamp_[a] != stamp_[b] ? stamp_[a] < stamp_[b] : a < b; });
  }

  const Trace& trace_;
  const Request& request_;
  const int64_t capacity_;
  const NextUse next_;
  std::vector<int64_t> stamp_;  // by chunk: when it was loaded, or used last
  std::vector<int> held_;
  int64_t clock_ = 0;
};

// The uses between one use of a chunk and the next one of the same chunk.
struct Gap {
  int chunk;
  int from;  // the use before; negative if it is in the repetition before
  int to;
  bool stays;
};

class Planner {
 public:
  Planner(const Trace& trace, const Request& request)
      : trace_(trace),
        request_(request),
        staying_capacity_(std::max(request.capacity - request.ahead, least_capacity(trace))),
        num_uses_(static_cast<int>(trace.uses.size())) {}

  Table table() {
    const std::vector<Miss> misses = repeating_misses();
    find_gaps(misses);
    Table table{num_uses_, num_steps_, {}, {}, {}};
    place_loads(table);
    for (const Gap& gap : gaps_) {
      if (gap.stays && gap.from < 0) table.initial.push_back(gap.chunk);
      const int after = gap.from < 0 ? gap.from + length() : gap.from;
      if (!gap.stays) table.evictions.push_back({gap.chunk, after, fate_of(trace_.chunks[gap.chunk])});
    }
    std::sort(table.initial.begin(), table.initial.end());
    std::sort(table.evictions.begin(), table.evictions.end(), [](const Eviction& a, const Eviction& b) {
      return std::pair(a.after, a.chunk) < std::pair(b.after, b.chunk);
    });
    return table;
  }

 private:
  int length() const { return num_uses_ * num_steps_; }

  // Returns the misses of the steps that repeat, with uses numbered through these steps.
  std::vector<Miss> repeating_misses() {
    std::map<std::vector<int>, int> seen;  // by state: the step that begins with it
    std::vector<std::vector<Miss>> steps;
    for (DemandCache cache(trace_, request_, staying_capacity_);; steps.push_back(cache.play_step())) {
      if (std::ssize(steps) > kMostSteps) {
        request_.step_end = StepEnd::Drop;
        return repeating_misses();
      }
      const auto [at, is_new] = seen.emplace(cache.state(), std::ssize(steps));
      if (is_new) continue;
      std::vector<Miss> misses;
      num_steps_ = static_cast<int>(std::ssize(steps)) - at->second;
      for (int step = 0; step < num_steps_; ++step) {
        for (const Miss& miss : steps[at->second + step]) misses.push_back({miss.use + step * num_uses_, miss.chunk});
      }
      return misses;
    }
  }

  void find_gaps(const std::vector<Miss>& misses) {
    const NextUse next(trace_);
    occupied_.assign(length(), 0);
    for (int use = 0; use < length(); ++use) {
      for (const int chunk : trace_.uses[use % num_uses_].chunks) {
        occupied_[use] += trace_.chunks[chunk].bytes;
        const int to = use + next.distance(chunk, use % num_uses_);
        const int repeated = to >= length() ? length() : 0;
        const bool missed = std::binary_search(misses.begin(), misses.end(), Miss{to - repeated, chunk});
        gaps_.push_back({chunk, use - repeated, to - repeated, !missed});
      }
    }
    std::sort(gaps_.begin(), gaps_.end(),
              [](const Gap& a, const Gap& b) { return std::pair(a.to, a.chunk) < std::pair(b.to, b.chunk); });
    for (const Gap& gap : gaps_) {
      if (gap.stays) occupy(gap.from + 1, gap.to, gap.chunk);
    }
  }

  int64_t& occupied(int use) { return occupied_[use < 0 ? use + length() : use]; }

  void occupy(int begin, int end, int chunk) {
    for (int use = begin; use < end; ++use) occupied(use) += trace_.chunks[chunk].bytes;
  }

  bool fits(int begin, int end, int chunk, int64_t capacity) {
    for (int use = begin; use < end; ++use) {
      if (occupied(use) + trace_.chunks[chunk].bytes > capacity) return false;
    }
    return true;
  }

  // Places each load as early as space allows, in the order of need. No load begins before one that is needed earlier.
  // By next use, a chunk that would be loaded again at once stays.
  void place_loads(Table& table) {
    int earliest = 0;
    for (Gap& gap : gaps_) {
      if (gap.stays) continue;
      const int step = gap.to - gap.to % num_uses_;
      const bool may_stay =
          request_.policy == Policy::NextUse && (request_.step_end == StepEnd::Keep || gap.from >= step);
      const int least = std::max({step, gap.from + 1, earliest});
      int begin = gap.to;
      if (may_stay && fits(gap.from + 1, gap.to, gap.chunk, staying_capacity_)) begin = gap.from + 1;
      while (begin > least && fits(begin - 1, begin, gap.chunk, request_.capacity)) --begin;
      occupy(begin, gap.to, gap.chunk);
      gap.stays = may_stay && begin == gap.from + 1;
      if (gap.stays) continue;
      table.loads.push_back({gap.chunk, begin - 1, gap.to});
      earliest = begin;
    }
  }

  const Trace& trace_;
  Request request_;
  const int64_t staying_capacity_;  // for chunks that are used or stay
  const int num_uses_;
  int num_steps_ = 1;
  std::vector<Gap> gaps_;          // by their ends
  std::vector<int64_t> occupied_;  // by use: bytes of the chunks that are in memory during it, or being loaded
};

}  // namespace

Table plan(const Trace& trace, const Request& request) {
  check(!trace.uses.empty() && request.capacity >= least_capacity(trace), "the capacity holds the chunks of every use");
  return Planner(trace, request).table();
}

double loaded_bytes(const Trace& trace, const Table& table) {
  double bytes = 0;
  for (const Load& load : table.loads) bytes += static_cast<double>(trace.chunks[load.chunk].bytes);
  return bytes / table.num_steps;
}

double written_bytes(const Trace& trace, const Table& table) {
  double bytes = 0;
  for (const Eviction& eviction : table.evictions) {
    if (eviction.fate == Fate::Write) bytes += static_cast<double>(trace.chunks[eviction.chunk].bytes);
  }
  return bytes / table.num_steps;
}

}  // namespace braid::moves
