// The moves of a step as data: which chunk leaves memory after which use, and when each is loaded again.
//
// A policy decides which chunks leave. For chunks of equal size and uses of one chunk, evicting the chunk whose next
// use is farthest needs the fewest loads of all choices (Belady, "A study of replacement algorithms for a
// virtual-storage computer", 1966; Mattson et al., "Evaluation techniques for storage hierarchies", 1970). A step
// repeats, so its uses are known after one of them; PatrickStar (Fang et al., 2021) evicts chunks of parameters like
// this.
//
// For chunks of different sizes the same rule is a heuristic. The fewest bytes are then NP-hard to find (Chrobak et
// al., "Caching is hard - even in the fault model", 2012). A pass over the finished table keeps chunks that turn out to
// fit. The rule counts loads; it does not avoid writes.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/moves/trace.h"

namespace braid::moves {

// The chunk that leaves when space is needed: that with the farthest next use, the least recently used one, or the one
// that was loaded first.
enum class Policy : uint8_t { NextUse, LeastRecent, FirstIn };

// Keep: chunks stay in memory from one step to the next; the caller updates them there as well as on disk. Drop: each
// step begins with nothing in memory.
enum class StepEnd : uint8_t { Keep, Drop };

struct Request {
  int64_t capacity = 0;  // bytes
  Policy policy = Policy::NextUse;
  StepEnd step_end = StepEnd::Keep;
  // Bytes of the capacity that chunks do not stay in, so that loads can begin while other chunks are used. With 0 the
  // policy fills memory, and most loads begin only when the use before them has ended. With the bytes of one block, the
  // next block is loaded while one runs. It is less where the largest use leaves less.
  int64_t ahead = 0;
};

// A load that may begin once use `after` has ended (-1: when the first step begins), and must end before use `before`
// begins. It begins as early as space allows, but never before the update that precedes its step.
struct Load {
  int chunk = 0;
  int after = -1;
  int before = 0;
  bool operator==(const Load&) const = default;
};

// Drop: the disk has the same bytes. Write: the chunk changed, so its space is free once it is written.
enum class Fate : uint8_t { Drop, Write };

// A chunk that leaves memory once use `after` has ended, before the loads with the same `after` begin.
struct Eviction {
  int chunk = 0;
  int after = 0;
  Fate fate = Fate::Drop;
  bool operator==(const Eviction&) const = default;
};

// The moves of `num_steps` steps, after which they repeat. Uses are numbered through these steps. Most traces repeat
// after one step.
struct Table {
  int uses_per_step = 0;
  int num_steps = 1;
  std::vector<int> initial;         // chunks in memory before the first use and after the last, ascending
  std::vector<Load> loads;          // in the order in which they begin and are needed
  std::vector<Eviction> evictions;  // in the order of their uses

  int num_uses() const { return uses_per_step * num_steps; }
};

// Returns the table of the steady state. If the policy does not repeat itself within 64 steps, the table is that of
// StepEnd::Drop. REQUIRES: the capacity is at least least_capacity(trace); the trace has uses.
Table plan(const Trace& trace, const Request& request);

// Returns the mean bytes that a step loads, and those that it writes.
double loaded_bytes(const Trace& trace, const Table& table);
double written_bytes(const Trace& trace, const Table& table);

// Returns a chunk's fate when it leaves memory.
inline Fate fate_of(const Chunk& chunk) { return chunk.content == Content::Gradients ? Fate::Write : Fate::Drop; }

}  // namespace braid::moves
