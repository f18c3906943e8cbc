// Lays out parameters one after another in the flat buffers, and makes views of them. The buffers are allocated once;
// only bind() replaces the data. Initial values of sharded parameters are computed unit by unit, so no rank ever holds
// all of them.
#include "braid/param/param_store.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/disk/aligned_buffer.h"
#include "braid/param/collected_parameters.h"
#include "braid/param/initial_values.h"
#include "braid/param/memory_account.h"

namespace braid::param {
namespace {

int64_t aligned(int64_t elements) { return (elements + kSliceAlign - 1) / kSliceAlign * kSliceAlign; }

}  // namespace

ParamStore::ParamStore(const std::vector<layout::BlockSpec>& blocks, const StoreOptions& options)
    : options_(options),
      params_(parameters_of(blocks, model::Trained::Yes)),
      frozen_(parameters_of(blocks, model::Trained::No)) {
  const at::ScalarType type = c10::typeMetaToScalarType(options.data.dtype());
  const bool rounds = type == at::kBFloat16 || type == at::kHalf;
  check(rounds || type == at::kFloat || type == at::kDouble, "parameters are float32, float64, bfloat16 or float16");
  master_type_ = rounds ? at::kFloat : type;
  const auto& [what, part, parts] = options.sharding;
  check(0 <= part && part < parts && (parts == 1 || what != Sharded::Nothing), "parts are of something sharded");
  check(!has_parameters_on_disk() || shards_parameters(), "parameters on disk are sharded, if only in one part");
  check(!has_gradients_on_disk() || what >= Sharded::Gradients, "so are gradients");
  layout_ = lay_out(params_, first_blocks(params_, blocks), is_sharded() ? unit_step() : 0);
  frozen_layout_ = lay_out(frozen_, first_blocks(frozen_, blocks), shards_parameters() ? unit_step() : 0);
  list_gathered(blocks);
  allocate();
  make_views();
  make_owned();
  if (is_sharded()) {
    fill_units();
  } else {
    fill_masters();
    round_masters();
  }
  fill_frozen();
  for (Parameter& param : params_) param.data.requires_grad_(true);
}

bool ParamStore::shards_gradients() const {
  const Sharding& sharding = options_.sharding;
  const bool shares = sharding.what >= Sharded::Gradients && sharding.parts > 1;
  return has_gradients_on_disk() || (shares && options_.reduction == Reduction::Fast);
}

// Returns a length whose parts are whole slices, and whole blocks of the disk in every type.
int64_t ParamStore::unit_step() const {
  const bool halves =
      has_parameters_on_disk() && c10::elementSize(c10::typeMetaToScalarType(options_.data.dtype())) < 4;
  return kSliceAlign * (halves ? 2 : 1) * options_.sharding.parts;
}

void ParamStore::list_gathered(const std::vector<layout::BlockSpec>& blocks) {
  for (const layout::BlockSpec& block : blocks) {
    std::set<int> gathered;
    for (const layout::ParamSpec& spec : block.params) {
      const Parameter& param = (*this)[spec.name];
      if (param.is_trained() && is_sharded()) gathered.insert(unit_of(param));
      if (param.is_trained() || !shards_parameters()) continue;
      gathered.insert(static_cast<int>(layout_.units.size()) + frozen_layout_.unit_of_param[param.index]);
    }
    gathered_by_block_.emplace_back(gathered.begin(), gathered.end());
  }
}

// Returns the length of a slice in the flat buffers. A tied parameter is a unit of its own, which is sharded as a
// whole.
int64_t ParamStore::extent(const Parameter& param) const {
  return !is_sharded() || param.uses == 1 ? aligned(param.num_elements()) : units()[unit_of(param)].length();
}

void ParamStore::allocate() {
  const at::TensorOptions& data = options_.data;
  for (const Parameter& param : params_) {
    if (options_.reduction == Reduction::Fast) break;
    num_extra_ += extent(param) * (static_cast<int64_t>(param.local_uses.size()) - 1);
  }
  if (options_.disk) open_disk();
  DiskTensors* const of_data = has_parameters_on_disk() ? disk_.get() : nullptr;
  data_.emplace(params_, layout_, options_.sharding, data, of_data);
  frozen_data_.emplace(frozen_, frozen_layout_, shards_parameters() ? options_.sharding : Sharding{}, data, of_data);
  flat_master_ = rounds() ? new_masters() : flat_data();
  const MemoryScope scope(MemoryCategory::Gradients);
  const int64_t length = shards_gradients() ? num_owned() : num_flat() + num_extra_;
  if (disk_ && has_gradients_on_disk()) {
    const int64_t owned = num_owned() + num_extra_ / options_.sharding.parts;
    flat_grads_ = disk_->zeros(owned, master_type_, MemoryCategory::Gradients);
  } else {
    flat_grads_ = at::zeros({length}, data.dtype(master_type_));
  }
}

bool ParamStore::rounds() const { return master_type_ != c10::typeMetaToScalarType(options_.data.dtype()); }

// Opens the disk with space for all that is on it, unless that is nothing. A rank whose parameters are all frozen has
// gradients on disk too, if none.
void ParamStore::open_disk() {
  const auto wide = static_cast<int64_t>(c10::elementSize(master_type_));
  const auto size = static_cast<int64_t>(c10::elementSize(c10::typeMetaToScalarType(options_.data.dtype())));
  int64_t states = int{rounds()} * num_owned() * wide;
  for (const int64_t of_slice : options_.disk->state_bytes) {
    states += disk::whole_blocks(num_owned() / kSliceAlign * of_slice);
  }
  const int64_t data = has_parameters_on_disk() ? size * num_owned() : 0;
  int64_t bytes = states + data;
  if (has_parameters_on_disk()) bytes += size * (frozen_layout_.num_elements / options_.sharding.parts);
  if (has_gradients_on_disk()) bytes += wide * gradient_elements_on_disk();
  if (has_gradients_on_disk() || has_parameters_on_disk()) bytes = std::max(bytes, disk::kBlockBytes);
  if (bytes == 0) return;
  if (options_.disk->copies == Copies::Two) {
    bytes += states + (rounds() ? data : size * num_owned());  // the old values of weights in memory are on disk, too
  }
  disk_ = std::make_shared<DiskTensors>(*options_.disk, bytes);
}

int64_t ParamStore::gradient_elements_on_disk() const {
  return num_owned() + num_extra_ / options_.sharding.parts + num_tree_levels() * (num_flat() + num_extra_);
}

int ParamStore::num_tree_levels() const {
  if (!has_gradients_on_disk() || options_.reduction == Reduction::Fast) return 0;
  return std::bit_width(static_cast<unsigned>(options_.disk->num_microbatches)) - 1;
}

at::Tensor ParamStore::new_masters() const {
  if (disk_) return disk_->zeros(num_owned(), master_type_, MemoryCategory::Optimizer);
  const MemoryScope scope(MemoryCategory::Optimizer);
  return at::zeros({num_owned()}, options_.data.dtype(master_type_));
}

void ParamStore::make_views() {
  int64_t extra = num_flat();
  for (Parameter& param : params_) {
    if (!is_sharded()) param.master = slice_at(flat_master_, param.offset, param.placement);
    if (shards_gradients()) continue;
    param.main_grad = slice_at(flat_grads_, param.offset, param.placement);
    for (const int use : param.local_uses) {
      at::Tensor grad = param.main_grad;
      if (options_.reduction == Reduction::Reproducible && use != param.local_uses.front()) {
        grad = slice_at(flat_grads_, extra, param.placement);
        extra += extent(param);
      }
      param.use_grads.push_back({use, std::move(grad)});
    }
  }
}

void ParamStore::make_owned() {
  if (!is_sharded()) {
    owned_ = {{0, num_flat(), 0, flat_master_, flat_data(), flat_grads_.narrow(0, 0, num_flat())}};
    return;
  }
  const bool masters_apart = !flat_master_.is_same(flat_data());
  int64_t place = 0;
  for (const ShardUnit& unit : units()) {
    const int64_t length = unit.length() / options_.sharding.parts;
    const int64_t begin = unit.begin + options_.sharding.part * length;
    OwnedRange range{begin, begin + length, place};
    range.data = flat_data().narrow(0, shards_parameters() ? place : begin, length);
    range.master = masters_apart ? flat_master_.narrow(0, place, length) : range.data;
    range.grad = flat_grads_.narrow(0, shards_gradients() ? place : begin, length);
    owned_.push_back(std::move(range));
    place += length;
  }
}

at::Tensor ParamStore::owned_grad(int unit, int place) const {
  if (place == 0) return owned_[unit].grad;
  int64_t begin = num_owned();
  for (const Parameter& param : params_) {
    const auto further = static_cast<int64_t>(param.local_uses.size()) - 1;
    const int64_t length = units()[unit_of(param)].length() / options_.sharding.parts;
    if (unit_of(param) == unit) return flat_grads_.narrow(0, begin + (place - 1) * length, length);
    begin += further * length;
  }
  throw InternalError(cat("no unit ", unit));
}

// Computes initial values on the host, whatever the device of the store.
void ParamStore::fill_masters() {
  const bool on_host = flat_master_.is_cpu();
  const at::Tensor host = on_host ? flat_master_ : at::zeros({num_flat()}, flat_master_.scalar_type());
  for (Parameter& param : params_) {
    const at::Tensor placed = std::exchange(param.master, slice_at(host, param.offset, param.placement));
    fill_initial_values(param, options_.seed);
    param.master = placed;
  }
  if (!on_host) flat_master_.copy_(host);
}

void ParamStore::fill_units() {
  check(flat_data().is_cpu(), "sharded buffers are on the host");
  for (size_t u = 0; u < units().size(); ++u) {
    const ShardUnit& unit = units()[u];
    const at::Tensor whole = at::zeros({unit.length()}, master_type_);
    for (int p = unit.first_param; p < unit.first_param + unit.num_params; ++p) {
      params_[p].master = slice_at(whole, params_[p].offset - unit.begin, params_[p].placement);
      fill_initial_values(params_[p], options_.seed);
      params_[p].master.reset();
    }
    const OwnedRange& mine = owned_[u];
    mine.master.copy_(whole.narrow(0, mine.begin - unit.begin, mine.length()));
    if (shards_parameters()) {
      mine.data.copy_(mine.master);
    } else {
      unit_data(static_cast<int>(u)).copy_(whole);
    }
  }
}

// Rounds the initial values once, as those of trained parameters are.
void ParamStore::fill_frozen() {
  for (Parameter& param : frozen_) {
    param.master = at::zeros(param.placement.local_shape, master_type_);
    fill_initial_values(param, options_.seed);
    const at::Tensor values = std::exchange(param.master, {}).view({-1});
    for (const HeldRange& range : frozen_data_->held()) {
      const int64_t begin = std::max(range.begin, param.offset);
      const int64_t end = std::min(range.end, param.offset + param.num_elements());
      if (begin >= end) continue;
      range.data.narrow(0, begin - range.begin, end - begin).copy_(values.narrow(0, begin - param.offset, end - begin));
    }
  }
}

at::Tensor ParamStore::own_part(int gathered) const {
  if (!of_frozen(gathered)) return owned_[gathered].data;
  return frozen_data_->held()[gathered - layout_.units.size()].data;
}

const at::Tensor& ParamStore::gathered_data(int gathered) const {
  return of_frozen(gathered) ? frozen_data_->unit(gathered - static_cast<int>(layout_.units.size()))
                             : data_->unit(gathered);
}

const Parameter& ParamStore::first_param(int gathered) const {
  if (!of_frozen(gathered)) return params_[layout_.units[gathered].first_param];
  return frozen_[frozen_layout_.units[gathered - layout_.units.size()].first_param];
}

void ParamStore::allocate_unit(int gathered) {
  if (!of_frozen(gathered)) return data_->allocate_unit(gathered);
  frozen_data_->allocate_unit(gathered - static_cast<int>(layout_.units.size()));
}

void ParamStore::free_unit(int gathered) {
  if (!of_frozen(gathered)) return data_->free_unit(gathered);
  frozen_data_->free_unit(gathered - static_cast<int>(layout_.units.size()));
}

void ParamStore::bind(const at::Tensor& flat_data) {
  check(!is_sharded(), "versions of the weights are whole");
  const bool masters_too = this->flat_data().is_same(flat_master_);
  data_->bind(flat_data, params_);
  if (masters_too) flat_master_ = flat_data;
  for (Parameter& param : params_) {
    param.data.requires_grad_(true);
    if (masters_too) param.master = slice_at(flat_master_, param.offset, param.placement);
  }
  make_owned();
}

void ParamStore::round_masters() {
  if (flat_data().is_same(flat_master_)) return;
  for (const OwnedRange& range : owned_) range.data.copy_(range.master);
}

Parameter& ParamStore::operator[](const std::string& name) {
  for (std::vector<Parameter>* const params : {&params_, &frozen_}) {
    const auto found = std::ranges::find(*params, name, &Parameter::name);
    if (found != params->end()) return *found;
  }
  throw InternalError(cat("no parameter is called ", name));
}

}  // namespace braid::param
