// The transformer blocks of a pipeline stage as a chain whose segments are kept, recomputed or moved to a tier, with
// the memory of each choice. nn/segments.h runs such a choice: a segment keeps its graph, or keeps only its input and
// is recomputed as a whole, once, in backward. What the first blocks keep may move to the tier of memory.activations
// and come back. This is a restriction of the schedules of Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova,
// "Optimal checkpointing for heterogeneous chains" (2019), which may recompute a block several times, and of Beaumont,
// Eyraud-Dubois and Shilova, "Efficient combination of rematerialization and offloading for training DNNs" (2021),
// which moves any tensor.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "braid/spec/recompute.h"

namespace braid::plan {

// A block of a chain, for one microbatch. All but `seconds` are bytes.
struct ChainBlock {
  double kept = 0;       // its graph, with its input
  double input = 0;      // its input, if a segment begins here and keeps only that
  double working = 0;    // the most that its backward holds beside graphs before it and its own, inside a graph
  double at_border = 0;  // the same of the last block of a graph
  double seconds = 0;    // to recompute it
};

// The time of moves to a tier and back, per byte, and that of the computation under which they hide. All are seconds.
struct MoveTimes {
  double write = 0, read = 0, copy = 0;  // copy: computation of its own
  double forward = 0, backward = 0;      // of the stage, for one microbatch

  // Returns the seconds that computation waits for this number of bytes of a microbatch.
  double waits(double bytes) const {
    return bytes * copy + std::max(bytes * write - forward, 0.0) + std::max(bytes * read - backward, 0.0);
  }
};

struct RecomputeChain {
  int first = 0;                   // number in the stage of blocks[0]: backward ends there
  std::vector<ChainBlock> blocks;  // those that backward runs
  double before = 0;               // the embedding's bytes: kept with the first block, or recomputed with it
  double hidden = 0;               // the output of a block
  double output = 0;               // held with the last block's graph, if the stage has no head; kept if that graph is
  double kept_output = 0;          // held with each kept graph, if blocks have graphs of their own
  bool has_head = false;           // the head is in one graph with kept blocks before it
  double head = 0;                 // kept by the head
  double head_working = 0;         // the most that the head's backward holds in addition to all that is kept
  double least = 0;                // bytes that the microbatch in backward holds at some moment in any case
  double forward = 0;              // the most that the forward of a block holds beside what it has moved to a tier
  double padding = 0;              // of the copies of two segments that move
  bool is_pipelined = true;        // several microbatches may be in flight
  std::optional<MoveTimes> moves;  // nothing: no blocks move
};

struct ChainMemory {
  double kept = 0;        // of a microbatch in flight
  double working = 0;     // the most that its passes hold in addition to kept; may be negative
  double moved = 0;       // of a microbatch: they move to a tier and back
  double last_moved = 0;  // of these, the last segment's

  // Returns the peak with this number of microbatches in flight, that in backward included.
  double peak(int in_flight) const { return in_flight * kept + working; }
  bool operator==(const ChainMemory&) const = default;
};

// The most bytes that a microbatch holds in passes of a stage that runs alone. While blocks that move run forward,
// there are copies of two segments; backward has a segment and the one before it, which is read. 0: there is no such
// segment.
struct MovedPeaks {
  double forward = 0, forward_of_first = 0, backward_of_first = 0, backward_of_others = 0;
  double backward = 0;  // of all blocks and the head
};

// The memory of the first blocks of a chain, whose activations move to a tier: a segment is in memory while it runs,
// and so is the segment before it, which is written or read meanwhile.
class MovedBlocks {
 public:
  explicit MovedBlocks(const RecomputeChain& chain) : chain_(chain) {}

  // Adds the next block, whose graph is kept.
  void keep();
  // Adds the blocks from the next one to `end`, not included, which are recomputed together.
  void recompute(int end);

  int count() const { return count_; }
  double bytes() const { return bytes_; }  // of a microbatch, on the tier
  double last_segment() const { return last_segment_; }
  MovedPeaks peaks() const;  // of a stage that runs alone
  double most() const;       // of all passes, where the forward of another microbatch may be before

 private:
  void add(double segment, double working);

  const RecomputeChain& chain_;
  int count_ = 0, num_segments_ = 0;
  double bytes_ = 0, first_segment_ = 0, last_segment_ = 0, largest_ = 0;
  double forward_ = 0, first_ = 0, others_ = 0;
};

// Returns the memory if `segments` are recomputed (recomputed_segments(), in numbers of the stage), and if what the
// first `on_tier` blocks of the stage keep is on a tier. A segment that begins before the chain is cut there. One that
// ends behind these blocks keeps its input in memory.
ChainMemory chain_memory(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments,
                         int on_tier = 0);

// Returns the same in the passes of such a stage. REQUIRES: a block moves.
MovedPeaks moved_peaks(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments, int on_tier);

// Returns the seconds that recomputing these segments takes.
double chain_seconds(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments);

struct ChainChoice {
  ChainMemory memory;
  double seconds = 0;
  std::vector<spec::RecomputedBlocks> segments;  // in numbers of the stage
  int on_tier = 0;                               // the first blocks of the stage, whose activations move
};

// Returns the choices that may be best under some limit: for every number of microbatches in flight and every limit,
// the fastest choice that fits is among them. They are sorted by time, the fastest first. The method is dynamic
// programming over the blocks. Its states are those pairs of bytes kept and of peak that no faster choice has. Of the
// blocks that move, all are recomputed as segments of one block, or none.
std::vector<ChainChoice> best_choices(const RecomputeChain& chain);

}  // namespace braid::plan
