// Changes of each number are uniform and relative to the largest number of its row.
#include "braid/verify/perturbation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/rand.h>
#include <c10/core/GradMode.h>

#include "braid/base/seeds.h"
#include "braid/verify/rounding.h"

namespace braid::verify {
namespace {

at::Tensor changed(const at::Tensor& value, double relative, uint64_t key) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor plain = value.detach().to(at::kDouble);
  const at::Tensor scale = plain.dim() == 0 ? plain.abs() : plain.abs().amax({-1}, true);
  at::Generator draws = at::make_generator<at::CPUGeneratorImpl>(key);
  const at::Tensor uniform = at::rand(plain.sizes(), draws, plain.options()).mul_(2).sub_(1);
  return plain.add(uniform.mul_(scale).mul_(relative)).to(value.scalar_type()).sub_(value.detach());
}

}  // namespace

void Perturbation::made(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) {
  if (place.kind != nn::ValueKind::Output) return next_.made(place, microbatch, value);
  const int subject = subjects_.of_value(place);
  const double relative = rounding_of(dtype_, subjects_[subject].longest_sum);
  const uint64_t key = random_bits(microbatch.dropout_key, static_cast<uint64_t>(subject));
  value = value.add(changed(value, relative, key));
  if (value.requires_grad() && value.dim() > 0) {
    value.register_hook([=](const at::Tensor& gradient) { return gradient.add(changed(gradient, relative, ~key)); });
  }
  next_.made(place, microbatch, value);
}

}  // namespace braid::verify
