// The code that all optimizers share, and the choice of the optimizer.
#include "braid/optim/optimizer.h"

#include <utility>
#include <vector>

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
    begun_ = store_.disk() != nullptr;
    if (begun_) pass_.begin(step, num_steps() + 1, states());
    return begun_;
  }
  void advance(int64_t offset) override { pass_.advance(offset); }

 private:
  std::vector<OptimizerState> zero_states() const override { return pass_.zero_states(); }
  void update(const OptimizerStep& step) override {
    std::exchange(begun_, false) ? pass_.finish() : pass_.run(step, num_steps(), states());
  }

  const ParameterGroups groups_;
  ElementPass pass_;
  bool begun_ = false;
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
