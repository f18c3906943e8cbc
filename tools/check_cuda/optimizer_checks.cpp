// Optimizers and the gradient's norm over a parameter store on the device, against a store in float64 on the CPU.
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "braid/comm/local/run_ranks.h"
#include "braid/optim/grad_norm.h"
#include "braid/optim/optimizer.h"
#include "tools/check_cuda/kernel_checks.h"

namespace braid::cuda_check {
namespace {

// Sizes that do and do not fill a block of the flat buffers, with decay and without.
std::vector<layout::BlockSpec> some_parameters(Sizes sizes) {
  const model::Init init{model::Init::Kind::Normal, 0.5};
  const int64_t many = sizes == Sizes::Full ? 3000 : 33;
  return {
      {"a",
       {{"w", mesh::replicated({70, 31}), init},
        {"b", mesh::replicated({70}), init, model::WeightDecay::No},
        {"c", mesh::replicated({1500}), init, model::WeightDecay::No}}},
      {"d", {{"x", mesh::replicated({many, 1024}), init}, {"y", mesh::replicated({3}), init, model::WeightDecay::No}}}};
}

// The same numbers in the gradients of both; padding stays zero.
void fill_gradients(const Setting& s, param::ParamStore& store, param::ParamStore& exact, int seed) {
  const Setting masters{s.device, s.math(), s.sizes};
  for (const param::Parameter& param : store.params()) {
    const Input values = input(masters, param.placement.local_shape, {seed + param.index, 1});
    param.main_grad.copy_(values.device);
    exact.params()[static_cast<size_t>(param.index)].main_grad.copy_(values.exact);
  }
}

struct Stores {
  explicit Stores(const Setting& s)
      : device(some_parameters(s.sizes), Reduction::Fast, at::TensorOptions(s.dtype).device(s.device), 1),
        exact(some_parameters(s.sizes), Reduction::Fast, at::TensorOptions(at::kDouble), 1) {
    exact.flat_master().copy_(device.flat_master());
  }
  param::ParamStore device, exact;
};

void check_optimizer(const OptimizerSpec& spec, const Setting& s, Verdict& verdict) {
  const c10::AutoGradMode no_grad(false);
  Stores stores(s);
  const auto optimizer = optim::make_optimizer(spec, stores.device), exact = optim::make_optimizer(spec, stores.exact);
  for (int step = 1; step <= 3; ++step) {
    fill_gradients(s, stores.device, stores.exact, step);
    optimizer->step({.lr = 0.01, .grad_scale = 0.5});
    exact->step({.lr = 0.01, .grad_scale = 0.5});
  }
  const double allowed = rounding(s.math());
  verdict.compare("masters", stores.device.flat_master(), stores.exact.flat_master(), allowed);
  for (size_t i = 0; i < exact->states().size(); ++i) {
    const optim::OptimizerState& want = exact->states()[i];
    verdict.compare(want.name, optimizer->states()[i].flat, want.flat, allowed);
  }
  const at::Tensor masters = stores.device.flat_master().cpu();
  verdict.compare("weights are the masters rounded", stores.device.flat_data(), masters.to(s.dtype), 0);
}

}  // namespace

void check_adamw(const Setting& s, Verdict& verdict) {
  check_optimizer({.beta2 = 0.99, .weight_decay = 0.1}, s, verdict);
}
void check_sgd(const Setting& s, Verdict& verdict) {
  check_optimizer({.kind = OptimizerKind::Sgd, .momentum = 0.9, .weight_decay = 0.1}, s, verdict);
}

void check_gradient_norm(const Setting& s, Verdict& verdict) {
  const c10::AutoGradMode no_grad(false);
  Stores stores(s);
  fill_gradients(s, stores.device, stores.exact, 1);
  const optim::ParamOrder order{"w", "b", "c", "x", "y"};
  double norm = 0;
  run_ranks(1, [&](Communicator& world) {
    norm = optim::global_grad_norm(stores.device, order, [](const param::Parameter&) { return true; }, {world});
  });
  const at::Tensor squares = stores.device.flat_grads().cpu().to(at::kDouble).square();
  verdict.compare("norm", at::full({}, norm, at::kDouble), squares.sum().sqrt(), 1e-12);
}

std::vector<KernelCheck> kernel_checks() {
  return {{"norm", check_norm},
          {"sum of branches", check_join},
          {"bias + GELU", check_gelu},
          {"SwiGLU", check_swiglu},
          {"rotary", check_rotary},
          {"loss", check_loss},
          {"row sum", check_row_sum},
          {"embedding gradient", check_embedding_gradient},
          {"weight gradient", check_weight_gradient},
          {"dropout mask", check_dropout_mask},
          {"AdamW", check_adamw},
          {"SGD", check_sgd},
          {"gradient norm", check_gradient_norm}};
}

}  // namespace braid::cuda_check
