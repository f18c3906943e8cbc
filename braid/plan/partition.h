// Cuts a model into pipeline stages such that the slowest rank is as fast as possible and no rank exceeds a memory
// limit.
//
// The time of a step with many microbatches is that of its slowest rank. Partitions are compared by, in this order,
//   1. the time of the slowest rank for one microbatch: the sum over its stages, divided by its speed;
//   2. the time of the slowest stage, because stages fill and drain the pipeline one after another;
//   3. the sum over stages of the squares of their times.
// With one stage per rank, 1 and 2 are the classical linear partition problem. With several stages per rank, 1 comes
// first: while the pipeline is full, a light stage compensates for a heavy one (the head) on the same rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::plan {

// A stage and the rank that holds it.
struct BlockStage {
  int rank = 0;
  double block_seconds = 0;  // time of one block, above 0; equal for all stages of a rank
  double end_seconds = 0;    // time outside blocks (embedding, head); 0: the stage gets at least half a block
};

// Cuts a model of identical blocks. A cut lies between two blocks or in the middle of a block. Returns the blocks of
// each stage, `num_blocks` in all. The slowest rank is as fast as possible, and the times of a rank's stages are as
// equal as possible. Among equal ranks the last ones get the remainder, because they have the fewest microbatches in
// flight. REQUIRES: there are at least as many half blocks as stages.
//
// partition_units() accepts unequal units and a memory limit, and makes the slowest rank as fast, but is thousands of
// times slower. A search cuts thousands of models with this function.
std::vector<double> cut_equal_blocks(const std::vector<BlockStage>& stages, int num_blocks);

// A part of the model that is never cut, with its costs for one microbatch on a rank of speed 1.
struct Unit {
  std::string name;                                     // "embedding", "blocks.3.attention", "head"
  double forward = 0, input_grad = 0, weight_grad = 0;  // seconds
  int64_t activation_bytes = 0;                         // bytes for each microbatch in flight
  int64_t fixed_bytes = 0;                              // bytes of parameters, gradients and optimizer states

  double seconds() const { return forward + input_grad + weight_grad; }
  bool operator==(const Unit&) const = default;
};

// A rank that holds a stage. A bidirectional schedule (DualPipe) has two holders for each stage, with a share of 1/2
// each. The shares of a stage's holders add up to 1.
struct Holder {
  int stage = 0, rank = 0;
  double share = 1;   // fraction of the stage's microbatches
  int in_flight = 1;  // the most microbatches of this stage whose activations the rank keeps at a time
  bool operator==(const Holder&) const = default;
};

// Returns the holders of all stages under `schedule`, ordered by stage. A microbatch is in flight from its forward to
// its weight-gradient pass, because the inputs of products are kept until then.
std::vector<Holder> holders(const Schedule& schedule);

struct PartitionRequest {
  std::vector<Unit> units;      // in model order
  std::vector<Holder> holders;  // at least one for every stage
  std::vector<double> speeds;   // relative speed of each rank; empty: all 1
  int64_t limit_bytes = 0;      // memory limit of each rank; 0: none
};

struct Partition {
  std::vector<int> first_unit;                      // first unit of each stage, then the number of units
  std::vector<double> stage_seconds, rank_seconds;  // for one microbatch
  // For each rank, the sum over its stages of fixed bytes plus `in_flight` times activation bytes. This is an upper
  // bound if the stages of a rank do not peak at the same time.
  std::vector<int64_t> rank_bytes;
  // Best: no partition is better. Found: the exact search would take too long, and moving a few cuts gives no better
  // one. Found occurs only if ranks hold several stages that are not nested. Of S stages that are nested, s and S - 1 -
  // s are on one rank.
  enum class Quality { Best, Found } quality = Quality::Best;
};

// Returns a partition into contiguous stages of at least one unit each. Throws ConfigError if there are fewer units
// than stages, or if no partition is found that keeps every rank within the limit. In the latter case the message
// describes the partition whose fullest rank needs least memory (of those found, if the exact search would take too
// long). It names that rank and its bytes over the limit.
Partition partition_units(const PartitionRequest& request);

}  // namespace braid::plan
