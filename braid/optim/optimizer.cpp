// The code that all optimizers share, and the choice of the optimizer.
#include "braid/optim/optimizer.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/optim/element_pass.h"
#include "braid/optim/muon.h"
#include "braid/param/memory_account.h"

namespace braid::optim {
namespace {

// An optimizer that updates element by element, by the rule of its kind (element_update.h).
class ElementOptimizer final : public Optimizer {
 public:
  ElementOptimizer(const OptimizerSpec& spec, param::ParamStore& store)
      : Optimizer(store), groups_(spec, store), pass_(element_rule(spec), groups_, store) {}

  bool begin(const OptimizerStep& step) override {
    if (!store_.disk()) return false;
    pass_.begin(step, num_steps() + 1, states(), speculates() ? PassMode::Speculative : PassMode::InPlace);
    begun_ = step;
    return true;
  }
  void advance(int64_t offset) override { pass_.advance(num_owned_before(offset)); }
  void withdraw() override {
    if (!begun_ || !speculates()) return;
    pass_.finish();
    run_again(*begun_, PassMode::Undo);
    begun_.reset();
  }

 private:
  std::vector<OptimizerState> zero_states() const override { return pass_.zero_states(); }
  // Returns the place in the states of the first element from `offset` of the flat buffers on that this rank owns.
  int64_t num_owned_before(int64_t offset) const {
    int64_t count = 0;
    for (const param::OwnedRange& range : store_.owned()) {
      count += std::clamp(offset - range.begin, int64_t{0}, range.end - range.begin);
    }
    return count;
  }
  bool speculates() const { return store_.disk()->copies() == param::Copies::Two; }
  void run_again(const OptimizerStep& step, PassMode mode) {
    pass_.begin(step, num_steps(), states(), mode);
    pass_.finish();
  }
  void update(const OptimizerStep& step) override {
    const std::optional<OptimizerStep> begun = std::exchange(begun_, std::nullopt);
    if (!begun) return pass_.run(step, num_steps(), states());
    pass_.finish();
    if (!speculates()) return check(*begun == step, "the step that was begun is made");
    *begun == step ? pass_.keep() : run_again(step, PassMode::Again);
  }

  const ParameterGroups groups_;
  ElementPass pass_;
  std::optional<OptimizerStep> begun_;  // in parts
};

}  // namespace

const std::vector<OptimizerState>& Optimizer::states() {
  if (!states_.empty()) return states_;
  const param::MemoryScope scope(param::MemoryCategory::Optimizer);
  return states_ = zero_states();
}

void Optimizer::step(const OptimizerStep& step) {
  ++num_steps_;
  update(step);
  // The update bypassed autograd. A backward pass that saved the old weights must fail instead of using the new ones.
  store_.flat_data().unsafeGetTensorImpl()->bump_version();
}

int num_states(const OptimizerSpec& spec, model::LinearMap linear) {
  if (spec.kind == OptimizerKind::Muon) return Muon::num_states(linear);
  return element_rule(spec).num_states();
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec, param::ParamStore& store, Communicator* shards,
                                          Communicator* tensor) {
  if (spec.kind == OptimizerKind::Muon) return std::make_unique<Muon>(spec, store, shards, tensor);
  return std::make_unique<ElementOptimizer>(spec, store);
}

}  // namespace braid::optim
