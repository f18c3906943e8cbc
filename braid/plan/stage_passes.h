// The times that each pipeline stage's forward and backward passes take for one microbatch.
#pragma once

#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/run_layout.h"

namespace braid::plan {

// The seconds of a pass, by category. Only exchanges that computation does not hide count.
struct PassSeconds {
  double compute = 0;
  double tensor = 0;   // exchanges of tensor ranks, and waits for the slowest one (DeviceGroup::skew)
  double context = 0;  // exchanges of context and expert ranks

  double total() const { return compute + tensor + context; }
  bool operator==(const PassSeconds&) const = default;
  PassSeconds& operator+=(const PassSeconds& other);
};
PassSeconds operator*(double times, const PassSeconds& pass);

// The passes of one stage. The backward pass is split into the gradients of inputs and of weights (zero bubble).
// Recomputation is part of the input-gradient pass.
struct StagePasses {
  PassSeconds forward, input_grad, weight_grad;

  PassSeconds all() const;
  bool operator==(const StagePasses&) const = default;
};

// Returns the passes of each stage of the layout, on the kind of device that holds the stage (StageLoad::devices).
std::vector<StagePasses> stage_passes(const RunSpec& spec, const RunLayout& layout, const Cluster& cluster,
                                      FormulaSet formulas);

}  // namespace braid::plan
