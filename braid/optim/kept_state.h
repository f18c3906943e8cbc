// What an optimizer's step changes, kept so that the step can be taken back bit for bit: masters, both moments, the
// count of steps. Costs three times the masters' memory, and per keep() or restore() one read and one write of each.
// It does not know when a step is wrong.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "braid/optim/adamw.h"
#include "braid/param/param_store.h"

namespace braid {

class KeptState {
 public:
  // Both outlive this.
  KeptState(ParamStore& store, AdamW& optimizer);

  void keep();
  // All is as it was at the last keep(), rounded data included. Backward over weights saved since then fails, as after
  // a step.
  void restore();

 private:
  ParamStore& store_;
  AdamW& optimizer_;
  at::Tensor master_, first_moment_, second_moment_;
  int64_t num_steps_ = -1;  // nothing kept
};

}  // namespace braid
