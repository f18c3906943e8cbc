// The transformer blocks of a pipeline stage as a chain whose segments are kept or recomputed, with the memory of each
// choice. nn/segments.h runs such a choice: a segment keeps its graph, or keeps only its input and is recomputed as a
// whole, once, in backward. This is a restriction of the schedules of Beaumont, Eyraud-Dubois, Herrmann, Joly and
// Shilova, "Optimal checkpointing for heterogeneous chains" (2019), which may recompute a block several times.
#pragma once

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

struct RecomputeChain {
  int first = 0;                   // number in the stage of blocks[0]: backward ends there
  std::vector<ChainBlock> blocks;  // those that backward runs
  double before = 0;               // the embedding's bytes: kept with the first block, or recomputed with it
  double hidden = 0;               // the output of a block
  double output = 0;               // held with the last block's graph, if the stage has no head; kept if that graph is
  bool has_head = false;           // the head is in one graph with kept blocks before it
  double head = 0;                 // kept by the head
  double head_working = 0;         // the most that the head's backward holds in addition to all that is kept
  double least = 0;                // bytes that the microbatch in backward holds at some moment in any case
};

struct ChainMemory {
  double kept = 0;     // of a microbatch in flight
  double working = 0;  // the most that its backward holds in addition to kept(); may be negative

  // Returns the peak with this number of microbatches in flight, that in backward included.
  double peak(int in_flight) const { return in_flight * kept + working; }
  bool operator==(const ChainMemory&) const = default;
};

// Returns the memory if `segments` are recomputed (recomputed_segments(), in numbers of the stage). A segment that
// begins before the chain is cut there.
ChainMemory chain_memory(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments);

// Returns the seconds that recomputing these segments takes.
double chain_seconds(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments);

struct ChainChoice {
  ChainMemory memory;
  double seconds = 0;
  std::vector<spec::RecomputedBlocks> segments;  // in numbers of the stage
};

// Returns the choices that may be best under some limit: for every number of microbatches in flight and every limit,
// the fastest choice that fits is among them. They are sorted by time, the fastest first. The method is dynamic
// programming over the blocks. Its states are those pairs of bytes kept and of peak that no faster choice has.
std::vector<ChainChoice> best_choices(const RecomputeChain& chain);

}  // namespace braid::plan
