// The trace of a step: which chunks of memory each of its parts needs, in order. A chunk is what moves between memory
// and disk as a whole, such as the parameters of a block.
//
// `moves` is a component of its own and not a part of `schedule`: a schedule is one source of a trace, the runtime's
// own record of a step (residency.h) is the other, and what moves depends on the trace alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::moves {

// Every use of a chunk of gradients changes it. Parameters change between steps only.
enum class Content : uint8_t { Parameters, Gradients };

struct Chunk {
  int64_t bytes = 0;
  Content content = Content::Parameters;
};

// A part of the step that needs some chunks in memory all at once.
struct Use {
  std::vector<int> chunks;  // ascending, each once
  bool operator==(const Use&) const = default;
};

// A step. Steps repeat, so the first use follows the last.
struct Trace {
  std::vector<Chunk> chunks;
  std::vector<Use> uses;
};

// The chunks that a block of a stage uses. Blocks may share chunks, as those with the two uses of a tied table do.
struct Block {
  std::vector<int> parameters;  // F, B, I and recomputation read them
  std::vector<int> gradients;   // B and W add to them
};

struct Stages {
  std::vector<Chunk> chunks;
  std::vector<std::vector<Block>> blocks;  // by stage, in the order of forward
};

// Returns stages whose blocks have one chunk of parameters each, of the given bytes. If `tied_bytes` is not 0, the
// first block of the first stage and the last block of the last stage also share a chunk of that size.
Stages make_stages(const std::vector<std::vector<int64_t>>& bytes_of_blocks, int64_t tied_bytes = 0);

// Returns the uses of a rank's program, one for each block of an action. Backwards and weight passes go from the last
// block of a stage to the first. Other actions use nothing, and the two of a fused pair follow each other.
// REQUIRES: `schedule` has no UPDATE, so that parameters stay the same within a step.
Trace trace_of(const Schedule& schedule, int rank, const Stages& stages);

// Returns the bytes that the largest use needs. No smaller capacity can run the step.
int64_t least_capacity(const Trace& trace);

int64_t bytes_of(const std::vector<Chunk>& chunks, std::span<const int> numbers);

// The times of the next uses of all chunks, counted in uses.
class NextUse {
 public:
  explicit NextUse(const Trace& trace);

  // Returns after how many uses the chunk is used next: 1 for use `use` + 1, the number of uses in a step for `use`
  // itself in the next step. Returns kNever for a chunk without uses.
  int distance(int chunk, int use) const;

  // Returns the one of the chunks whose next use is farthest, the lowest number if there are several. REQUIRES: not
  // empty.
  int farthest(std::span<const int> chunks, int use) const;

  static constexpr int kNever = 1 << 30;

 private:
  int num_uses_;
  std::vector<std::vector<int>> uses_;  // by chunk, ascending
};

}  // namespace braid::moves
