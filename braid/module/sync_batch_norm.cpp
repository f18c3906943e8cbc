// Batch norm over all ranks. Forward exchanges moments, and backward all-reduces two sums of gradients.
#include "braid/module/sync_batch_norm.h"

#include <ATen/ops/addcmul.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include <iterator>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/op_name.h"

namespace braid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Returns a view of shape (1, features, 1, ...), which broadcasts over x: one number per feature.
at::Tensor per_feature(const at::Tensor& numbers, const at::Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = numbers.numel();
  return numbers.view(shape);
}

// Returns the sum over all dims except the one of features.
at::Tensor sums(const at::Tensor& x) {
  std::vector<int64_t> dims{0};
  for (int64_t dim = 2; dim < x.dim(); ++dim) dims.push_back(dim);
  return x.sum(dims);
}

// The statistics that normalize a minibatch.
struct Statistics {
  at::Tensor mean, inverse_deviation;  // per feature
  double count;                        // number of values per feature, on all ranks
  Communicator* group;
};

// Refers to the group in an autograd graph. The group must outlive the graph.
struct GroupHolder : torch::CustomClassHolder {
  explicit GroupHolder(Communicator& the_group) : group(the_group) {}
  Communicator& group;
};

// z = (x - mean) / deviation, where mean and deviation are functions of all ranks' x.
struct Normalize : Function<Normalize> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const Statistics& by) {
    const at::Tensor z = (x - per_feature(by.mean, x)) * per_feature(by.inverse_deviation, x);
    ctx->save_for_backward({z, by.inverse_deviation});
    ctx->saved_data["count"] = by.count;
    ctx->saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(*by.group));
    return z;
  }

  // With n values and g = dL/dz: dL/dx = (g - sum(g) / n - z sum(g z) / n) / deviation.
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    if (c10::GradMode::is_enabled()) {
      throw ConfigError({{"SyncBatchNorm", "", "cannot be differentiated twice (create_graph)", ""}});
    }
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &z = saved[0], &inverse = saved[1], &gradient = grads[0];
    const auto holder = c10::static_intrusive_pointer_cast<GroupHolder>(ctx->saved_data["group"].toCapsule());
    const at::Tensor all_sums = at::cat({sums(gradient), sums(gradient * z)}).to(at::kDouble).cpu();
    const comm::CallName name("batch norm, backward");
    holder->group.all_reduce(all_sums, ReduceOp::Sum).wait_host();
    const auto means = (all_sums / ctx->saved_data["count"].toDouble()).to(z.options()).chunk(2);
    const at::Tensor centred = gradient - per_feature(means[0], z) - z * per_feature(means[1], z);
    return {centred * per_feature(inverse, z), at::Tensor()};
  }
};

std::shared_ptr<SyncBatchNormImpl> synchronised(const torch::nn::Module& module, Communicator& group) {
  const auto parts = modules::batch_norm_parts(module);
  if (!parts) return nullptr;
  auto norm = std::make_shared<SyncBatchNormImpl>(parts->options, parts->state, group);
  norm->train(module.is_training());
  return norm;
}

void replace_elements(torch::nn::SequentialImpl& sequential, Communicator& group) {
  const auto names = sequential.named_children().keys();
  for (size_t i = 0; i < names.size(); ++i) {
    const auto norm = synchronised(*sequential.ptr(i), group);
    if (!norm) continue;
    sequential.replace_module(names[i], norm);
    *std::next(sequential.begin(), static_cast<std::ptrdiff_t>(i)) = torch::nn::AnyModule(norm);
  }
}

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, Communicator& group)
    : options_(options), group_(&group) {
  SyncBatchNormImpl::reset();
}

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, const modules::BatchNormState& shared,
                                     Communicator& group)
    : options_(options), state_(modules::registered(shared, *this)), group_(&group) {}

void SyncBatchNormImpl::reset() { state_ = modules::registered(modules::fresh_batch_norm(options_), *this); }

void SyncBatchNormImpl::refuse_other_inputs(const at::Tensor& x) const {
  std::vector<Problem> found;
  if (x.dim() < 2 || x.dim() > 5 || x.size(1) != options_.num_features()) {
    found.push_back({"SyncBatchNorm", cat("input of ", x.sizes()),
                     cat("must have 2 to 5 dims, the second of ", options_.num_features(), " features"), ""});
  }
  const at::ScalarType type = x.scalar_type();
  const at::Tensor& own = state_.weight.defined() ? state_.weight : state_.running_mean;
  if ((type != at::kFloat && type != at::kDouble) || (own.defined() && own.scalar_type() != type)) {
    found.push_back({"SyncBatchNorm", cat("input of type ", type), "must be float32 or float64, as the module is", ""});
  }
  if (!found.empty()) throw ConfigError(std::move(found));
}

at::Tensor SyncBatchNormImpl::forward(at::Tensor x) {
  refuse_other_inputs(x);
  if (!is_training() && options_.track_running_stats()) {
    return at::batch_norm(x, state_.weight, state_.bias, state_.running_mean, state_.running_var, false, 0,
                          options_.eps(), false);
  }
  const at::Tensor moments = modules::moments_of_all(modules::batch_moments(x), *group_);
  if (moments[0].item<double>() <= 1) {
    throw ConfigError({{"SyncBatchNorm", cat(moments[0].item<double>(), " values per feature on all ranks"),
                        "must be more than one to have a variance", ""}});
  }
  if (is_training() && options_.track_running_stats()) modules::move_running(state_, options_, moments);
  return normalized(x, moments);
}

at::Tensor SyncBatchNormImpl::normalized(const at::Tensor& x, const at::Tensor& moments) const {
  const int64_t features = options_.num_features();
  const double count = moments[0].item<double>();
  const at::Tensor variance = moments.narrow(0, 1 + features, features) / count;
  const auto options = x.options().requires_grad(false);
  const at::Tensor z = Normalize::apply(x, Statistics{moments.narrow(0, 1, features).to(options),
                                                      (variance + options_.eps()).rsqrt().to(options), count, group_});
  if (!options_.affine()) return z;
  return at::addcmul(per_feature(state_.bias, x), z, per_feature(state_.weight, x));
}

std::vector<std::string> sync_batch_norms(torch::nn::Module& module, Communicator& group) {
  const auto replace_in = [&](torch::nn::Module& part) {
    if (auto* sequential = dynamic_cast<torch::nn::SequentialImpl*>(&part)) replace_elements(*sequential, group);
  };
  const auto parts = module.modules(false);  // keeps replaced modules alive until the end
  replace_in(module);
  for (const auto& part : parts) replace_in(*part);
  std::vector<std::string> unreached;
  if (modules::batch_norm_parts(module)) unreached.push_back(module.name());
  for (const auto& item : module.named_modules("", false)) {
    if (modules::batch_norm_parts(*item.value())) unreached.push_back(item.key());
  }
  return unreached;
}

}  // namespace braid
