// Changes a run's values and gradients at random, by as much as sums in another order may change them.
#pragma once

#include "braid/nn/block.h"
#include "braid/spec/train_spec.h"
#include "braid/verify/subjects.h"

namespace braid::verify {

class Perturbation final : public nn::ValueObserver {
 public:
  // Both outlive this. `next` receives the changed values.
  Perturbation(DType dtype, const Subjects& subjects, nn::ValueObserver& next)
      : dtype_(dtype), subjects_(subjects), next_(next) {}

  // Changes the value and its gradient. The loss has no gradient of its own.
  void made(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) override;

 private:
  const DType dtype_;
  const Subjects& subjects_;
  nn::ValueObserver& next_;
};

}  // namespace braid::verify
