// One elementwise update of the masters that a rank owns, of all parameters or of some. One fused pass does clipping,
// states, decay, update and rounding, and reads and writes each element once. The caller counts the steps.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "braid/optim/element_rule.h"
#include "braid/optim/optimizer.h"
#include "braid/optim/parameter_groups.h"

namespace braid::optim {

// Selects the parameters to update. An empty filter selects all.
using ParamFilter = std::function<bool(const param::Parameter&)>;

// Returns this rank's shards of the parameters that `takes` selects. Stretches are as long as possible, and their
// places in the state are consecutive.
std::vector<StateStretch> owned_stretches(const param::ParamStore& store, const ParamFilter& takes);
// Returns a state of zeros for the elements of `stretches`.
OptimizerState zeros_of(const std::string& name, const std::vector<StateStretch>& stretches,
                        const param::ParamStore& store);

class ElementPass {
 public:
  // REQUIRES: `groups` and `store` outlive this.
  ElementPass(const ElementRule& rule, const ParameterGroups& groups, param::ParamStore& store,
              const ParamFilter& takes = {});

  std::vector<OptimizerState> zero_states() const;
  // Runs update `number`, counted from 1. REQUIRES: `states` are like those of zero_states(), in the same order.
  void run(const OptimizerStep& step, int64_t number, std::span<const OptimizerState> states) const;

 private:
  template <class T>
  void run_as(const OptimizerStep& step, int64_t number, std::span<const OptimizerState> states) const;
  template <class Factors>
  void update(const StateStretch& stretch, const std::vector<Factors>& of_groups,
              std::span<const OptimizerState> states) const;

  const ElementRule rule_;
  const ParameterGroups& groups_;
  param::ParamStore& store_;
  const std::vector<StateStretch> stretches_;
  at::Tensor groups_on_device_;  // groups.of_blocks() on the store's device; undefined on the CPU
};

}  // namespace braid::optim
