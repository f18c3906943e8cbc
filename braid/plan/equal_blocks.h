// Cutting a model whose blocks are alike, by halves of them. Its slowest rank is that of partition_units(), which takes
// any units and a limit of memory and is thousands of times slower: this is for whoever must cut thousands of models.
#pragma once

#include <vector>

namespace braid::plan {

// A stage on its rank.
struct BlockStage {
  int rank = 0;
  double block_seconds = 0;  // of one block, above 0; the same on all stages of a rank
  double end_seconds = 0;  // of what the stage holds beside blocks; where there is none, it holds half a block or more
};

// The blocks of each stage, `num_blocks` in all, so that the slowest rank is as fast as can be; of a rank's stages so
// that they are as alike as can be. There are at least as many halves as stages. Of ranks that are alike the last ones
// get the remainder: they have the fewest microbatches under way.
std::vector<double> cut_equal_blocks(const std::vector<BlockStage>& stages, int num_blocks);

}  // namespace braid::plan
