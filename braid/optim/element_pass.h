// One elementwise update of the masters that a rank owns, of all parameters or of some: one fused pass, in which clip,
// states, decay, update and rounding read and write each element once. It counts no steps.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "braid/optim/element_rule.h"
#include "braid/optim/optimizer.h"
#include "braid/optim/parameter_groups.h"

namespace braid::optim {

// Selects the parameters to update; empty: all.
using ParamFilter = std::function<bool(const param::Parameter&)>;

// Returns this rank's shards of the parameters that `takes` selects, as long stretches as possible, with consecutive
// places.
std::vector<StateStretch> owned_stretches(const param::ParamStore& store, const ParamFilter& takes);
// Zeros for these elements.
OptimizerState zeros_of(const std::string& name, const std::vector<StateStretch>& stretches,
                        const param::ParamStore& store);

class ElementPass {
 public:
  // `groups` and `store` outlive this.
  ElementPass(const ElementRule& rule, const ParameterGroups& groups, param::ParamStore& store,
              const ParamFilter& takes = {});

  std::vector<OptimizerState> zero_states() const;
  // Update number `number`, from 1. The states are those of zero_states(), in its order.
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
  at::Tensor groups_on_device_;  // groups.of_blocks(), where the store is
};

}  // namespace braid::optim
