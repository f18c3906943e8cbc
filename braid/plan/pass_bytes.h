// The bytes that single passes of a stage hold, from which braid_memory.h and stage_chain.h make those of the stage.
#pragma once

#include "braid/plan/braid_memory.h"

namespace braid::plan {

// The place of a block in its stage, for its backward.
struct BlockPlace {
  spec::Recompute::Keeps keeps = spec::Recompute::Keeps::Everything;
  size_t kind = 0;                // of layer
  bool own_graph = false;         // its graph ends with it, so its output stays
  bool gradient_is_ours = false;  // the gradient of its output comes from this stage; else it is communication
};
// Returns the most bytes that the backward of a block holds beside what is kept or recomputed.
double block_working_bytes(const PlannedRun& run, const ActivationBytes& tensors, const BlockPlace& place);
// Returns the same of the head's backward. REQUIRES: the stage has the head.
double head_working_bytes(const PlannedRun& run, const ActivationBytes& tensors);
// Returns the most bytes that the forward of a block holds if nothing of it is kept.
double forward_bytes(const ActivationBytes& tensors, const StageLoad& load);
// Returns the bytes that the head keeps of a microbatch.
double head_kept_bytes(const ActivationBytes& tensors, spec::Recompute::Keeps keeps);
// Returns the part of pending_kept_bytes() that is the head's.
double head_pending_bytes(const ActivationBytes& tensors);

// Returns true if the last block's output stays when the head has run backward, which had it as its input: where each
// block has a graph of its own because its weights come from another tier. ZeRO 3 counts it with its buffers.
bool output_stays(const PlannedRun& run, const ActivationBytes& tensors, const StageLoad& load);

// Returns true if weight gradients have a separate pass, and no rank has a second stage whose forward hides the wait.
bool waits_in_a_line(const PlannedRun& run);

}  // namespace braid::plan
