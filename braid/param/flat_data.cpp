// Lays out parameters one after another, and makes views of their buffer.
#include "braid/param/flat_data.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/param/block_memory.h"
#include "braid/param/releasable.h"

namespace braid::param {
namespace {

std::string why_released(const std::vector<Parameter>& params, const ShardUnit& unit, const DiskTensors* disk) {
  std::vector<std::string> names;
  for (int p = unit.first_param; p < unit.first_param + unit.num_params; ++p) names.push_back(params[p].name);
  if (disk) return cat(joined(names), " are on disk: they are in memory only while their layer runs");
  return cat(joined(names), " are sharded: they are whole only while their layer runs, and in with_whole_parameters()");
}

int64_t rounded_up(int64_t elements, int64_t step) { return (elements + step - 1) / step * step; }

}  // namespace

at::Tensor slice_at(const at::Tensor& flat, int64_t offset, const mesh::Placement& placement) {
  return flat.narrow(0, offset, mesh::num_elements(placement.local_shape)).view(placement.local_shape).detach();
}

FlatLayout lay_out(std::vector<Parameter>& params, const std::vector<int>& block_of, int64_t unit_step) {
  FlatLayout layout;
  const int64_t step = std::max(unit_step, kSliceAlign);
  for (Parameter& param : params) {
    const Parameter* before = param.index > 0 ? &params[param.index - 1] : nullptr;
    const bool cut = !before || before->uses > 1 || param.uses > 1 || block_of[param.index] != block_of[before->index];
    if (unit_step > 0 && cut) {
      layout.num_elements = rounded_up(layout.num_elements, step);
      if (!layout.units.empty()) layout.units.back().end = layout.num_elements;
      layout.units.push_back({layout.num_elements, 0, param.index, 0});
    }
    param.offset = layout.num_elements;
    layout.num_elements += rounded_up(param.num_elements(), kSliceAlign);
    if (!layout.units.empty()) ++layout.units.back().num_params;
    layout.unit_of_param.push_back(static_cast<int>(layout.units.size()) - 1);
  }
  layout.num_elements = rounded_up(layout.num_elements, step);
  if (!layout.units.empty()) layout.units.back().end = layout.num_elements;
  return layout;
}

// Makes the views of sharded parameters unit by unit, so that no two units have memory at once.
FlatData::FlatData(std::vector<Parameter>& params, const FlatLayout& layout, const Sharding& sharding,
                   const at::TensorOptions& options, DiskTensors* disk)
    : units_are_(disk ? MemoryCategory::Parameters : MemoryCategory::Communication) {
  const bool is_sharded = sharding.what == Sharded::Parameters;
  const int64_t held = is_sharded ? layout.num_elements / sharding.parts : layout.num_elements;
  const at::ScalarType type = c10::typeMetaToScalarType(options.dtype());
  check(is_sharded || !disk, "data on disk are in memory unit by unit");
  {
    const MemoryScope scope(MemoryCategory::Parameters);
    flat_ = disk ? disk->zeros(held, type, MemoryCategory::Parameters) : at::zeros({held}, options);
  }
  if (!is_sharded) {
    for (const ShardUnit& unit : layout.units) units_.push_back({flat_.narrow(0, unit.begin, unit.length()), ""});
    bind(flat_, params);
    return;
  }
  int64_t place = 0;
  for (const ShardUnit& unit : layout.units) {
    const at::Tensor whole = disk ? empty_on_blocks(unit.length(), type) : at::empty({unit.length()}, options);
    units_.push_back({whole, why_released(params, unit, disk)});
    const Unit& made = units_.back();
    for (int p = unit.first_param; p < unit.first_param + unit.num_params; ++p) {
      params[p].data = slice_at(made.data, params[p].offset - unit.begin, params[p].placement);
    }
    release_memory(made.data, made.why_released);
    const int64_t length = unit.length() / sharding.parts, begin = unit.begin + sharding.part * length;
    held_.push_back({begin, begin + length, flat_.narrow(0, place, length)});
    place += length;
  }
}

void FlatData::allocate_unit(int number) {
  const MemoryScope scope(units_are_);
  restore_memory(units_[number].data);
}

void FlatData::free_unit(int number) { release_memory(units_[number].data, units_[number].why_released); }

void FlatData::bind(const at::Tensor& flat, std::vector<Parameter>& params) {
  check(flat.sizes() == flat_.sizes(), "a buffer is replaced by one of its length");
  flat_ = flat;
  for (Parameter& param : params) param.data = slice_at(flat_, param.offset, param.placement);
  held_ = {{0, flat_.numel(), flat_}};
}

}  // namespace braid::param
