// A name to a kind.
#include "braid/optim/element_rule.h"

#include "braid/base/errors.h"

namespace braid {
namespace {

ElementRule::Kind kind_of(const OptimizerSpec& spec) {
  if (spec.kind == OptimizerKind::Sgd) return ElementRule::Kind::Sgd;
  if (spec.kind == OptimizerKind::Adagrad) return ElementRule::Kind::Adagrad;
  if (spec.kind == OptimizerKind::Lion) return ElementRule::Kind::Lion;
  check(spec.kind == OptimizerKind::AdamW, "an elementwise update is one of those known");
  return ElementRule::Kind::AdamW;
}

}  // namespace

ElementRule element_rule(const OptimizerSpec& spec) {
  return {.kind = kind_of(spec),
          .momentum = spec.momentum,
          .beta1 = spec.beta1,
          .beta2 = spec.beta2,
          .eps = spec.eps,
          .weight_decay = spec.weight_decay};
}

}  // namespace braid
