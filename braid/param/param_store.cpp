// Lays out parameters one after another in the flat buffers, and makes views of them. The buffers are allocated once;
// only bind() replaces the data. Initial values of sharded parameters are computed unit by unit, so no rank ever holds
// all of them.
#include "braid/param/param_store.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/param/initial_values.h"
#include "braid/param/memory_account.h"
#include "braid/param/releasable.h"

namespace braid::param {
namespace {

int64_t aligned(int64_t elements) {
  return (elements + ParamStore::kAlign - 1) / ParamStore::kAlign * ParamStore::kAlign;
}

at::Tensor slice(const at::Tensor& flat, int64_t offset, const mesh::Placement& placement) {
  return flat.narrow(0, offset, mesh::num_elements(placement.local_shape)).view(placement.local_shape).detach();
}

void add_use(Parameter& param, const layout::ParamSpec& spec) {
  const bool same = param.placement == spec.placement && param.init == spec.init && param.decay == spec.decay &&
                    param.linear == spec.linear;
  check(same && param.uses == spec.uses, cat(spec.name, ": the places of a tied parameter describe it alike"));
  check(0 <= spec.use && spec.use < spec.uses, cat(spec.name, ": use ", spec.use, " of ", spec.uses));
  auto& uses = param.local_uses;
  const auto place = std::lower_bound(uses.begin(), uses.end(), spec.use);
  check(place == uses.end() || *place != spec.use, cat(spec.name, ": two blocks make use ", spec.use));
  uses.insert(place, spec.use);
}

std::vector<Parameter> collect(const std::vector<layout::BlockSpec>& blocks) {
  std::vector<Parameter> params;
  for (const layout::BlockSpec& block : blocks) {
    for (const layout::ParamSpec& spec : block.params) {
      auto found = std::find_if(params.begin(), params.end(), [&](const Parameter& p) { return p.name == spec.name; });
      if (found == params.end()) {
        Parameter param{spec.name, spec.placement, spec.init, spec.decay, spec.linear, static_cast<int>(params.size()),
                        spec.uses};
        found = params.insert(params.end(), std::move(param));
      }
      add_use(*found, spec);
    }
  }
  return params;
}

// Returns for each parameter the first block that has it.
std::vector<int> first_blocks(const std::vector<Parameter>& params, const std::vector<layout::BlockSpec>& blocks) {
  std::vector<int> found;
  for (const Parameter& param : params) {
    const auto has_it = [&](const layout::BlockSpec& block) {
      return std::any_of(block.params.begin(), block.params.end(), [&](auto& spec) { return spec.name == param.name; });
    };
    found.push_back(static_cast<int>(std::find_if(blocks.begin(), blocks.end(), has_it) - blocks.begin()));
  }
  return found;
}

std::string why_released(const std::vector<Parameter>& params, const ShardUnit& unit) {
  std::vector<std::string> names;
  for (int p = unit.first_param; p < unit.first_param + unit.num_params; ++p) names.push_back(params[p].name);
  return cat("the ranks share out ", joined(names), ": they are whole only while their layer runs, and inside of ",
             "DataParallel::with_whole_parameters");
}

}  // namespace

ParamStore::ParamStore(const std::vector<layout::BlockSpec>& blocks, const StoreOptions& options)
    : options_(options), params_(collect(blocks)) {
  const at::ScalarType type = c10::typeMetaToScalarType(options.data.dtype());
  const bool rounds = type == at::kBFloat16 || type == at::kHalf;
  check(rounds || type == at::kFloat || type == at::kDouble, "parameters are float32, float64, bfloat16 or float16");
  master_type_ = rounds ? at::kFloat : type;
  const auto& [what, part, parts] = options.sharding;
  check(0 <= part && part < parts && (parts == 1) == (what == Sharded::Nothing), "parts are of something shared out");
  lay_out(blocks);
  allocate();
  make_views();
  make_owned();
  if (units_.empty()) {
    fill_masters();
    round_masters();
  } else {
    fill_units();
  }
  for (Parameter& param : params_) param.data.requires_grad_(true);
}

bool ParamStore::shards_gradients() const {
  return options_.sharding.what >= Sharded::Gradients && options_.reduction == Reduction::Fast;
}

// Computes offsets, units and numbers of elements.
void ParamStore::lay_out(const std::vector<layout::BlockSpec>& blocks) {
  const Sharding& sharding = options_.sharding;
  const std::vector<int> block_of = first_blocks(params_, blocks);
  const int64_t step = kAlign * sharding.parts;
  for (Parameter& param : params_) {
    const Parameter* before = param.index > 0 ? &params_[param.index - 1] : nullptr;
    const bool cut = !before || before->uses > 1 || param.uses > 1 || block_of[param.index] != block_of[before->index];
    if (sharding.parts > 1 && cut) {
      num_flat_ = (num_flat_ + step - 1) / step * step;
      if (!units_.empty()) units_.back().end = num_flat_;
      units_.push_back({num_flat_, 0, param.index, 0});
    }
    param.offset = num_flat_;
    num_flat_ += aligned(param.num_elements());
    if (!units_.empty()) ++units_.back().num_params;
    unit_of_param_.push_back(static_cast<int>(units_.size()) - 1);
  }
  num_flat_ = (num_flat_ + step - 1) / step * step;
  if (!units_.empty()) units_.back().end = num_flat_;
  units_of_block_.resize(blocks.size());
  for (size_t block = 0; block < blocks.size() && !units_.empty(); ++block) {
    std::set<int> units;
    for (const layout::ParamSpec& spec : blocks[block].params) units.insert(unit_of((*this)[spec.name]));
    units_of_block_[block].assign(units.begin(), units.end());
  }
  num_owned_ = num_flat_ / sharding.parts;
  if (options_.reduction == Reduction::Fast) return;
  for (const Parameter& param : params_) {
    num_extra_ += extent(param) * (static_cast<int64_t>(param.local_uses.size()) - 1);
  }
}

// Returns the length of a slice in the flat buffers. A tied parameter is a unit of its own, which is sharded as a
// whole.
int64_t ParamStore::extent(const Parameter& param) const {
  return units_.empty() || param.uses == 1 ? aligned(param.num_elements()) : units_[unit_of(param)].length();
}

void ParamStore::allocate() {
  const at::TensorOptions& data = options_.data;
  const bool rounds = master_type_ != c10::typeMetaToScalarType(data.dtype());
  {
    const MemoryScope scope(MemoryCategory::Parameters);
    flat_data_ = at::zeros({shards_parameters() ? num_owned_ : num_flat_}, data);
  }
  {
    const MemoryScope scope(MemoryCategory::Optimizer);
    flat_master_ = rounds ? at::zeros({num_owned_}, data.dtype(master_type_)) : flat_data_;
  }
  const MemoryScope scope(MemoryCategory::Gradients);
  flat_grads_ = at::zeros({shards_gradients() ? num_owned_ : num_flat_ + num_extra_}, data.dtype(master_type_));
}

void ParamStore::make_views() {
  make_data_views();
  int64_t extra = num_flat_;
  for (Parameter& param : params_) {
    if (units_.empty()) param.master = slice(flat_master_, param.offset, param.placement);
    if (shards_gradients()) continue;
    param.main_grad = slice(flat_grads_, param.offset, param.placement);
    for (const int use : param.local_uses) {
      at::Tensor grad = param.main_grad;
      if (options_.reduction == Reduction::Reproducible && use != param.local_uses.front()) {
        grad = slice(flat_grads_, extra, param.placement);
        extra += extent(param);
      }
      param.use_grads.push_back({use, std::move(grad)});
    }
  }
}

// Makes the views of sharded parameters unit by unit, so that no two units have memory at once.
void ParamStore::make_data_views() {
  if (!shards_parameters()) {
    for (const ShardUnit& unit : units_) unit_data_.push_back(flat_data_.narrow(0, unit.begin, unit.length()));
    for (Parameter& param : params_) param.data = slice(flat_data_, param.offset, param.placement);
    return;
  }
  for (const ShardUnit& unit : units_) {
    unit_data_.push_back(at::empty({unit.length()}, options_.data));
    for (int p = unit.first_param; p < unit.first_param + unit.num_params; ++p) {
      params_[p].data = slice(unit_data_.back(), params_[p].offset - unit.begin, params_[p].placement);
    }
    release_memory(unit_data_.back(), why_released(params_, unit));
  }
}

void ParamStore::make_owned() {
  if (units_.empty()) {
    owned_ = {{0, num_flat_, 0, flat_master_, flat_data_, flat_grads_.narrow(0, 0, num_flat_)}};
    return;
  }
  const bool masters_apart = !flat_master_.is_same(flat_data_);
  int64_t place = 0;
  for (const ShardUnit& unit : units_) {
    const int64_t length = unit.length() / options_.sharding.parts;
    const int64_t begin = unit.begin + options_.sharding.part * length;
    OwnedRange range{begin, begin + length, place};
    range.data = flat_data_.narrow(0, shards_parameters() ? place : begin, length);
    range.master = masters_apart ? flat_master_.narrow(0, place, length) : range.data;
    range.grad = flat_grads_.narrow(0, shards_gradients() ? place : begin, length);
    owned_.push_back(std::move(range));
    place += length;
  }
}

// Computes initial values on the host, whatever the device of the store.
void ParamStore::fill_masters() {
  const bool on_host = flat_master_.is_cpu();
  const at::Tensor host = on_host ? flat_master_ : at::zeros({num_flat()}, flat_master_.scalar_type());
  for (Parameter& param : params_) {
    const at::Tensor placed = std::exchange(param.master, slice(host, param.offset, param.placement));
    fill_initial_values(param, options_.seed);
    param.master = placed;
  }
  if (!on_host) flat_master_.copy_(host);
}

void ParamStore::fill_units() {
  check(flat_data_.is_cpu(), "what is shared out lies on the host");
  for (size_t u = 0; u < units_.size(); ++u) {
    const ShardUnit& unit = units_[u];
    const at::Tensor whole = at::zeros({unit.length()}, master_type_);
    for (int p = unit.first_param; p < unit.first_param + unit.num_params; ++p) {
      params_[p].master = slice(whole, params_[p].offset - unit.begin, params_[p].placement);
      fill_initial_values(params_[p], options_.seed);
      params_[p].master.reset();
    }
    const OwnedRange& mine = owned_[u];
    mine.master.copy_(whole.narrow(0, mine.begin - unit.begin, mine.length()));
    if (shards_parameters()) {
      mine.data.copy_(mine.master);
    } else {
      unit_data_[u].copy_(whole);
    }
  }
}

void ParamStore::allocate_unit(int unit) {
  const MemoryScope scope(MemoryCategory::Communication);
  restore_memory(unit_data_[unit]);
}

void ParamStore::free_unit(int unit) { release_memory(unit_data_[unit], why_released(params_, units_[unit])); }

void ParamStore::bind(const at::Tensor& flat_data) {
  check(units_.empty(), "versions of the weights are whole");
  const bool masters_too = flat_data_.is_same(flat_master_);
  flat_data_ = flat_data;
  if (masters_too) flat_master_ = flat_data;
  for (Parameter& param : params_) {
    param.data = slice(flat_data_, param.offset, param.placement).requires_grad_(true);
    if (masters_too) param.master = slice(flat_master_, param.offset, param.placement);
  }
  make_owned();
}

void ParamStore::round_masters() {
  if (flat_data_.is_same(flat_master_)) return;
  for (const OwnedRange& range : owned_) range.data.copy_(range.master);
}

Parameter& ParamStore::operator[](const std::string& name) {
  const auto found = std::find_if(params_.begin(), params_.end(), [&](const Parameter& p) { return p.name == name; });
  check(found != params_.end(), cat("no parameter is called ", name));
  return *found;
}

}  // namespace braid::param
