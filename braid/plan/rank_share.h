// The part of the model that a pipeline rank has.
#pragma once

#include "braid/plan/model_states.h"
#include "braid/plan/run_layout.h"
#include "braid/plan/stage_passes.h"

namespace braid::plan {

// Bytes that a rank reads from a tier and writes to it.
struct Moved {
  double read = 0, written = 0;

  bool operator==(const Moved&) const = default;
};

// The part of the model that one pipeline rank has: the sums over all its stages.
struct RankShare {
  StageParameters parameters;
  double blocks = 0;       // number of blocks
  bool embedding = false;  // true if it has the embedding
  bool head = false;
  StageParameters block;   // parameters of one block
  ParameterSum ends;       // those outside of blocks
  ParameterSum both_uses;  // the tied table if the rank has both of its uses, else nothing
  StagePasses passes;      // of one microbatch, on average
  Moved activations;       // of a microbatch, to their tier and back
  size_t devices = 0;      // kind of the rank's devices: index into Cluster::devices

  bool operator==(const RankShare&) const = default;
};

}  // namespace braid::plan
