// Recompute: which blocks of a stage are run again together in backward. It counts blocks and runs none.
//
//   every:2 on a stage with both ends     [embedding 1 2] [3 4] [5] [head]      the head's graph is kept
#pragma once

#include <vector>

#include "braid/nn/block.h"
#include "braid/spec/recompute.h"

namespace braid::nn {

// Blocks [begin, end) of a stage, in its own count.
struct Segment {
  enum class Kept {
    Graph,  // forward leaves a graph for backward
    Input,  // forward leaves the input, from which backward makes the graph
  };
  int begin = 0, end = 0;
  Kept kept = Kept::Graph;

  bool operator==(const Segment&) const = default;
};

struct StageBlocks {
  int embedding = 0;  // 1: the first block is the embedding; it goes with the blocks behind it
  int middle = 0;     // what memory.recompute counts
  int head = 0;  // 1: the last block is the head; it is never run again, for its forward may write weight gradients
};

// In order, without gaps, none empty.
std::vector<Segment> plan_segments(const spec::Recompute& policy, const StageBlocks& blocks);

// The same with a segment of its own for every block whose graph is kept: backward goes block by block then.
std::vector<Segment> block_by_block(const std::vector<Segment>& plan);

// Returns the tensors that layers keep in those graphs.
Keep kept_by_layers(const spec::Recompute& policy);

}  // namespace braid::nn
