// Which chunks are in memory while a rank runs its steps. The runtime announces each use and gets the chunks to evict
// and to load:
//
//   Residency residency(chunks, {.capacity = bytes, .ahead = bytes of the largest block});
//   for each step:
//     run(residency.begin_step());
//     for each block that runs:
//       run(residency.before_use(chunks of the block));  // then wait for the loads of these chunks
//       compute;
//       run(residency.after_use(chunks of the block));
//
//   run(moves):  evictions  wait if the chunk is still loading; write it if its fate says so; free its memory
//                loads      allocate the chunk, start to read it
//
// The first step is traced: chunks are loaded when they are used, and the least recently used ones are evicted. The
// next begin_step() makes the table of moves (table.h) and brings memory to its initial state. A step that differs from
// the trace continues like the first one, and is the new trace.
//
// Uses may overlap: a chunk is needed from its before_use() to its after_use(). One thread calls.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/moves/table.h"

namespace braid::moves {

// An eviction to make now.
struct Departure {
  int chunk = 0;
  Fate fate = Fate::Drop;
  bool operator==(const Departure&) const = default;
};

// Moves to start now, evictions first: the loads need the space of what leaves.
struct Moves {
  std::vector<Departure> evictions;
  std::vector<int> loads;
};

class Residency {
 public:
  Residency(std::vector<Chunk> chunks, const Request& request);

  // Starts a step, after the update. Parameters that are loaded from now on are those of this step. If chunks stay in
  // memory between steps (StepEnd::Keep), the caller has updated all that are held there too; those of a step that
  // ended early may still have been loading. REQUIRES: all uses have ended.
  Moves begin_step();

  // Announces that a part of the step needs the chunks. All of them are in memory, or being loaded, once the moves have
  // been started. Throws RunError if the chunks in use exceed the capacity.
  Moves before_use(const std::vector<int>& chunks);

  // Announces that the part has ended. REQUIRES: before_use() with the same chunks.
  Moves after_use(const std::vector<int>& chunks);

  // Ends the step and evicts all chunks, for a caller that needs their memory between steps or changes them on disk
  // alone. The next begin_step() loads what the table begins with. REQUIRES: all uses have ended.
  Moves clear();

  // Makes the table of the last step that ended for another request. REQUIRES: a step has ended; nothing is held.
  void plan_with(const Request& request);

  bool holds(int chunk) const { return held_[chunk]; }  // in memory, or being loaded
  bool follows_table() const { return follows_; }       // false while a step is traced
  const std::optional<Table>& table() const { return table_; }
  // Returns the step of the table; without uses if there is none.
  Trace planned() const { return {trace_.chunks, planned_}; }
  int64_t bytes_held() const { return bytes_held_; }
  int64_t bytes_loaded() const { return bytes_loaded_; }  // since the start

 private:
  void end_step();
  void restart(Moves& moves);
  void load(int chunk, Moves& moves);
  void evict(int chunk, Moves& moves);
  void load_on_demand(const Use& use, Moves& moves);
  void evict_after(int use, Moves& moves);
  void load_after(int use, Moves& moves);
  // Returns the number in the table of the use that was announced last; that before the step if there is none.
  int last_use() const { return step_ * table_->uses_per_step + static_cast<int>(trace_.uses.size()) - 1; }

  Trace trace_;  // the step in progress
  Request request_;
  std::optional<Table> table_;
  std::vector<Use> planned_;  // the uses of a step of the table
  bool follows_ = false;
  int step_ = 0;                              // of the table
  size_t next_load_ = 0, next_eviction_ = 0;  // of the table
  std::vector<bool> held_;
  std::vector<int> num_users_;      // by chunk: uses in progress
  std::vector<int64_t> last_used_;  // by chunk, in uses since the start
  int64_t clock_ = 0;
  int64_t bytes_held_ = 0, bytes_loaded_ = 0;
};

}  // namespace braid::moves
