// Lays parameters out one after another, then makes views: the buffers are allocated once; only bind() moves the data.
#include "braid/param/param_store.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/param/initial_values.h"
#include "braid/param/memory_account.h"

namespace braid {
namespace {

int64_t aligned(int64_t elements) {
  return (elements + ParamStore::kAlign - 1) / ParamStore::kAlign * ParamStore::kAlign;
}

at::Tensor slice(const at::Tensor& flat, int64_t offset, const Placement& placement) {
  return flat.narrow(0, offset, num_elements(placement.local_shape)).view(placement.local_shape).detach();
}

void add_use(Parameter& param, const ParamSpec& spec) {
  const bool same = param.placement == spec.placement && param.init == spec.init && param.decay == spec.decay;
  check(same && param.uses == spec.uses, cat(spec.name, ": the places of a tied parameter describe it alike"));
  check(0 <= spec.use && spec.use < spec.uses, cat(spec.name, ": use ", spec.use, " of ", spec.uses));
  auto& uses = param.local_uses;
  const auto place = std::lower_bound(uses.begin(), uses.end(), spec.use);
  check(place == uses.end() || *place != spec.use, cat(spec.name, ": two blocks make use ", spec.use));
  uses.insert(place, spec.use);
}

std::vector<Parameter> collect(const std::vector<BlockSpec>& blocks) {
  std::vector<Parameter> params;
  for (const BlockSpec& block : blocks) {
    for (const ParamSpec& spec : block.params) {
      auto found = std::find_if(params.begin(), params.end(), [&](const Parameter& p) { return p.name == spec.name; });
      if (found == params.end()) {
        Parameter param{spec.name, spec.placement, spec.init, spec.decay, static_cast<int>(params.size()), spec.uses};
        found = params.insert(params.end(), std::move(param));
      }
      add_use(*found, spec);
    }
  }
  return params;
}

}  // namespace

ParamStore::ParamStore(const std::vector<BlockSpec>& blocks, Reduction reduction, const at::TensorOptions& data,
                       uint64_t seed)
    : reduction_(reduction), params_(collect(blocks)) {
  const at::ScalarType dtype = c10::typeMetaToScalarType(data.dtype());
  const bool rounds = dtype == at::kBFloat16 || dtype == at::kHalf;
  check(rounds || dtype == at::kFloat || dtype == at::kDouble, "parameters are float32, float64, bfloat16 or float16");
  const at::ScalarType master_dtype = rounds ? at::kFloat : dtype;
  int64_t num_flat = 0, num_extra = 0;
  for (Parameter& param : params_) {
    param.offset = num_flat;
    const int64_t extent = aligned(braid::num_elements(param.placement.local_shape));
    num_flat += extent;
    if (reduction == Reduction::Reproducible) num_extra += extent * static_cast<int64_t>(param.local_uses.size() - 1);
  }
  {
    const MemoryScope scope(MemoryCategory::Parameters);
    flat_data_ = at::zeros({num_flat}, data);
  }
  {
    const MemoryScope scope(MemoryCategory::Optimizer);
    flat_master_ = rounds ? at::zeros({num_flat}, data.dtype(master_dtype)) : flat_data_;
  }
  {
    const MemoryScope scope(MemoryCategory::Gradients);
    flat_grads_ = at::zeros({num_flat + num_extra}, data.dtype(master_dtype));
  }
  int64_t extra = num_flat;
  for (Parameter& param : params_) {
    param.data = slice(flat_data_, param.offset, param.placement);
    param.master = slice(flat_master_, param.offset, param.placement);
    param.main_grad = slice(flat_grads_, param.offset, param.placement);
    for (const int use : param.local_uses) {
      at::Tensor grad = param.main_grad;
      if (reduction == Reduction::Reproducible && use != param.local_uses.front()) {
        grad = slice(flat_grads_, extra, param.placement);
        extra += aligned(grad.numel());
      }
      param.use_grads.push_back({use, std::move(grad)});
    }
  }
  fill_masters(seed);
  for (Parameter& param : params_) param.data.requires_grad_(true);
  round_masters();
}

// Values are made on the host, whatever the device.
void ParamStore::fill_masters(uint64_t seed) {
  const bool on_host = flat_master_.is_cpu();
  const at::Tensor host = on_host ? flat_master_ : at::zeros({num_flat()}, flat_master_.scalar_type());
  for (Parameter& param : params_) {
    const at::Tensor placed = std::exchange(param.master, slice(host, param.offset, param.placement));
    fill_initial_values(param, seed);
    param.master = placed;
  }
  if (!on_host) flat_master_.copy_(host);
}

void ParamStore::bind(const at::Tensor& flat_data) {
  const bool masters_too = flat_data_.is_same(flat_master_);
  flat_data_ = flat_data;
  if (masters_too) flat_master_ = flat_data;
  for (Parameter& param : params_) {
    param.data = slice(flat_data_, param.offset, param.placement).requires_grad_(true);
    if (masters_too) param.master = slice(flat_master_, param.offset, param.placement);
  }
}

void ParamStore::round_masters() {
  if (!flat_data_.is_same(flat_master_)) flat_data_.copy_(flat_master_);
}

Parameter& ParamStore::operator[](const std::string& name) {
  const auto found = std::find_if(params_.begin(), params_.end(), [&](const Parameter& p) { return p.name == name; });
  check(found != params_.end(), cat("no parameter is called ", name));
  return *found;
}

}  // namespace braid
