// Cuts a model into pipeline stages such that the slowest rank is as fast as possible within a memory limit.
//
// The time of a step with many microbatches is that of its slowest rank. Partitions are compared by, in this order,
//   1. the time of the slowest rank: the sum over its stages, for one microbatch, divided by its speed;
//   2. the time of the slowest stage, because stages fill and drain the pipeline one after another;
//   3. the sum over stages of the squares of their times.
// With one stage per rank, 1 and 2 are the classical linear partition. With several stages per rank, 1 comes first.
// While the pipeline is full, a light stage compensates for a heavy one (the head) on the same rank. This works because
// a rank runs its stages at other times than its neighbours run theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::plan {

// A stage and the rank that holds it.
struct BlockStage {
  int rank = 0;
  double block_seconds = 0;  // time of one block, above 0; the same for all stages of a rank
  double end_seconds = 0;    // time outside blocks (embedding, head); 0: the stage gets at least half a block
};

// Cuts a model of identical blocks. A cut lies between two blocks or in the middle of a block. Returns the blocks of
// each stage, `num_blocks` in all. The slowest rank is as fast as possible, and the stages of a rank take times that
// are as equal as possible. Among equal ranks the last ones get the remainder, because they have the fewest
// microbatches in flight. REQUIRES: there are at least as many halves as stages.
//
// The slowest rank is as fast as that of partition_units(), which accepts any units and a memory limit but is thousands
// of times slower. A search cuts thousands of models with this function.
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

// A rank that holds a stage. The shares of a stage's holders add up to 1. A bidirectional schedule has two holders of
// 1/2 each.
struct Holder {
  int stage = 0, rank = 0;
  double share = 1;   // fraction of the stage's microbatches
  int in_flight = 1;  // the most microbatches of this stage whose activations the rank keeps at a time
  bool operator==(const Holder&) const = default;
};

// Returns the holders of stages under `schedule`, ordered by stage. A microbatch is in flight from its forward to its
// weight pass, because the inputs of products are kept until then.
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
  // Best: no partition is better. Found: there are too many partitions to try all, and moving a few cuts gives no
  // better one. Found occurs only if ranks hold several stages that are not nested. Nested: stages s and S - 1 - s are
  // on one rank.
  enum class Quality { Best, Found } quality = Quality::Best;
};

// Returns a partition into contiguous stages of at least one unit each. Throws ConfigError if there are fewer units
// than stages, or if no partition is found that keeps every rank within the limit. If the limit is exceeded, the
// message describes the partition with the lowest peak memory over all ranks, or the best one known if that search ends
// early. It names the fullest rank and its bytes over the limit.
Partition partition_units(const PartitionRequest& request);

}  // namespace braid::plan
