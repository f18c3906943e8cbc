// The times of each pipeline stage's passes for one microbatch.
#pragma once

#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/run_layout.h"

namespace braid::plan {

// The seconds of a pass, by their use.
struct PassSeconds {
  double compute = 0;
  double tensor = 0;
  double context = 0;  // exchanges of context and expert ranks

  double total() const { return compute + tensor + context; }
  bool operator==(const PassSeconds&) const = default;
  PassSeconds& operator+=(const PassSeconds& other);
};
PassSeconds operator*(double times, const PassSeconds& pass);

// The passes of one stage. Recomputation is part of the input-gradient pass.
struct StagePasses {
  PassSeconds forward, input_grad, weight_grad;

  PassSeconds all() const;
  bool operator==(const StagePasses&) const = default;
};

// Returns the passes of each stage of the layout, on that stage's kind of device.
std::vector<StagePasses> stage_passes(const RunSpec& spec, const RunLayout& layout, const Cluster& cluster,
                                      FormulaSet formulas);

}  // namespace braid::plan
