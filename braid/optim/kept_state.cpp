// Three copies there, three back.
#include "braid/optim/kept_state.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid {

KeptState::KeptState(ParamStore& store, AdamW& optimizer) : store_(store), optimizer_(optimizer) {
  const MemoryScope scope(MemoryCategory::Optimizer);
  const c10::AutoGradMode no_grad(false);
  master_ = at::empty_like(store.flat_master());
  first_moment_ = at::empty_like(optimizer.first_moment());
  second_moment_ = at::empty_like(optimizer.second_moment());
}

void KeptState::keep() {
  const c10::AutoGradMode no_grad(false);
  master_.copy_(store_.flat_master());
  first_moment_.copy_(optimizer_.first_moment());
  second_moment_.copy_(optimizer_.second_moment());
  num_steps_ = optimizer_.num_steps();
}

void KeptState::restore() {
  check(num_steps_ >= 0, "what is restored has been kept");
  const c10::AutoGradMode no_grad(false);
  store_.flat_master().copy_(master_);
  optimizer_.first_moment().copy_(first_moment_);
  optimizer_.second_moment().copy_(second_moment_);
  optimizer_.set_num_steps(num_steps_);
  store_.round_masters();
}

}  // namespace braid
