// The optimizers that update element by element: what they are is a rule (element_update.h).
#pragma once

#include <vector>

#include "braid/optim/element_pass.h"
#include "braid/optim/optimizer.h"

namespace braid::optim {

class ElementOptimizer final : public Optimizer {
 public:
  ElementOptimizer(const OptimizerSpec& spec, param::ParamStore& store)
      : Optimizer(store), groups_(spec, store), pass_(element_rule(spec), groups_, store) {}

 private:
  std::vector<OptimizerState> zero_states() const override { return pass_.zero_states(); }
  void update(const OptimizerStep& step) override { pass_.run(step, num_steps(), states()); }

  const ParameterGroups groups_;
  ElementPass pass_;
};

}  // namespace braid::optim
