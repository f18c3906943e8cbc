// Cutting a model into pipeline stages so that no rank is slower than it must be, under a limit of memory.
//
// The time of a step with many microbatches is that of its slowest rank, so partitions are compared by, in this order,
//   1. the time of the slowest rank: the sum over its stages, of one microbatch, divided by its speed;
//   2. the time of the slowest stage, since stages fill and drain the pipeline one after another;
//   3. the sum over stages of their times' squares.
// With one stage per rank, 1 and 2 are the classical linear partition. With several, 1 comes first: chunks of a rank
// run at different times than those of its neighbours, so a heavy chunk (the head) is made up for by a light one on
// the same rank, as long as the pipeline is full.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::plan {

// Cutting a model whose blocks are alike, by halves of them. Its slowest rank is that of partition_units(), which takes
// any units and a limit of memory and is thousands of times slower: this is for whoever must cut thousands of models.

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

// A piece of the model that is not cut, with what it costs one microbatch on a rank of speed 1.
struct Unit {
  std::string name;                                     // "embedding", "blocks.3.attention", "head"
  double forward = 0, input_grad = 0, weight_grad = 0;  // seconds
  int64_t activation_bytes = 0;                         // of each microbatch in flight
  int64_t fixed_bytes = 0;                              // parameters, gradients, optimizer

  double seconds() const { return forward + input_grad + weight_grad; }
  bool operator==(const Unit&) const = default;
};

// A rank that holds a stage. The shares of a stage's holders add up to 1: two halves in a bidirectional schedule.
struct Holder {
  int stage = 0, rank = 0;
  double share = 1;   // of the microbatches
  int in_flight = 1;  // the most microbatches whose activations of this stage the rank keeps at a time
  bool operator==(const Holder&) const = default;
};

// Returns the holders of stages under `schedule`, ordered by stage. A microbatch is in flight from its forward to its
// weight pass: the inputs of products are kept until then.
std::vector<Holder> holders(const Schedule& schedule);

struct PartitionRequest {
  std::vector<Unit> units;      // in model order
  std::vector<Holder> holders;  // of every stage at least one
  std::vector<double> speeds;   // of each rank, relative; empty: all 1
  int64_t limit_bytes = 0;      // of each rank; 0: none
};

struct Partition {
  std::vector<int> first_unit;                      // of each stage, then the number of units
  std::vector<double> stage_seconds, rank_seconds;  // of one microbatch
  // The sum over a rank's stages of fixed bytes and of activations times the most in flight: a bound where the stages
  // of a rank do not peak at the same time.
  std::vector<int64_t> rank_bytes;
  // Best: none is better. Found: too many ways of cutting to try all; none that moves a few cuts is better. Happens
  // only where ranks hold several stages in another order than nested (stages s and S - 1 - s on one rank).
  enum class Quality { Best, Found } quality = Quality::Best;
};

// Contiguous stages of at least one unit each. Throws ConfigError when there are fewer units than stages, or when no
// partition keeps every rank within the limit: then the message names the rank that is over the limit, and by how much,
// in the partition whose largest rank is the smallest.
Partition partition_units(const PartitionRequest& request);

}  // namespace braid::plan
