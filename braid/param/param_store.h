// The parameters and gradients of one rank as slices of flat buffers.
//
//   data   | wte | wpe | ln.w | ln.b | qkv.w | ...          one buffer, slices aligned to kAlign elements
//   master | wte | wpe | ln.w | ln.b | qkv.w | ...          float32, when data is bfloat16 or float16; else data itself
//   grads  | wte:0 | wpe:0 | ln.w:0 | ... | wte:1            one slice per (parameter, use) in reproducible mode,
//                                                           one per parameter in fast mode
//
// If the buffers are sharded (sharding.h), a rank holds only its owned ranges of some of them.
//
// Frozen parameters are in a buffer of their own. They have data only, and no optimizer, exchange or version of the
// weights meets them:
//
//   frozen  | ...
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/layout/param_spec.h"
#include "braid/param/disk_tensors.h"
#include "braid/param/flat_data.h"
#include "braid/param/parameter.h"
#include "braid/param/sharding.h"
#include "braid/spec/train_spec.h"

namespace braid::param {

struct StoreOptions {
  Reduction reduction = Reduction::Fast;
  at::TensorOptions data;  // the parameters' dtype and device
  uint64_t seed = 0;
  Sharding sharding = {};
  std::optional<DiskSpace> disk = {};  // none: all is in memory
};

class ParamStore {
 public:
  static constexpr int64_t kAlign = kSliceAlign;

  // Allocates and initialises. `blocks` are this rank's; parameters of equal name become one. `data` gives the data's
  // dtype (float32, float64, bfloat16 or float16) and the device of all buffers. Masters and gradients are float64 if
  // the data are, else float32. Initial values are the same on every device.
  ParamStore(const std::vector<layout::BlockSpec>& blocks, Reduction reduction, const at::TensorOptions& data,
             uint64_t seed)
      : ParamStore(blocks, {reduction, data, seed}) {}
  ParamStore(const std::vector<layout::BlockSpec>& blocks, const StoreOptions& options);
  ParamStore(const ParamStore&) = delete;

  Parameter& operator[](const std::string& name);  // trained or frozen; check() fails if there is none
  // Return the trained parameters, to which all flat buffers and units below belong unless they say otherwise.
  std::vector<Parameter>& params() { return params_; }
  const std::vector<Parameter>& params() const { return params_; }
  // Returns the frozen parameters.
  const std::vector<Parameter>& frozen() const { return frozen_; }
  // Returns the data of the frozen parameters, which are sharded if shards_parameters().
  const FlatData& frozen_data() const { return *frozen_data_; }
  // Returns the whole buffer. If parameters are sharded, returns the owned ranges, one after another.
  const at::Tensor& flat_data() const { return data_->flat(); }
  // Returns flat_data() if masters are the data. Otherwise returns the owned ranges, one after another; without
  // sharding, these are the whole buffer.
  const at::Tensor& flat_master() const { return flat_master_; }
  // Returns the whole buffer, in the layout of a whole flat_data(), followed by the slices of further uses. If
  // shards_gradients(), returns the owned ranges, one after another.
  const at::Tensor& flat_grads() const { return flat_grads_; }
  // Returns the disk of the optimizer's states and of other tensors (DiskSpace); null: nothing is on disk.
  DiskTensors* disk() const { return disk_.get(); }
  bool is_on_disk(const at::Tensor& flat) const { return disk_ && disk_->has(flat); }
  // Returns `flat` or, if it is on disk, its values in new memory. Throws RunError if the disk fails.
  at::Tensor in_memory(const at::Tensor& flat) const { return is_on_disk(flat) ? disk_->loaded(flat) : flat; }
  // Makes `flat_data` the parameters' data, in the same layout and in new leaves. Graphs that were built on the
  // previous data keep those. The masters are replaced too if they are the data. check() fails if anything is sharded.
  void bind(const at::Tensor& flat_data);
  // Called after writing masters. Sets the data to the masters rounded to nearest even, in the ranges that this rank
  // owns.
  void round_masters();

  int64_t num_flat() const { return layout_.num_elements; }                             // elements of a whole buffer
  int64_t num_owned() const { return layout_.num_elements / options_.sharding.parts; }  // elements it updates
  Reduction reduction() const { return options_.reduction; }
  uint64_t seed() const { return options_.seed; }

  const Sharding& sharding() const { return options_.sharding; }
  // Returns true if gradients are sharded, and come unit by unit. In reproducible mode they are not, because their tree
  // is over this rank's microbatches, unless they are on disk, where the tree is too (tree_on_disk.h). Nor are they in
  // one part in memory.
  bool shards_gradients() const;
  bool has_parameters_on_disk() const { return options_.disk && options_.disk->parameters == Kept::OnDisk; }
  bool has_gradients_on_disk() const { return options_.disk && options_.disk->gradients == Kept::OnDisk; }
  // Returns the number of levels of the tree of reproducible gradients on disk whose sums wait for their sibling.
  int num_tree_levels() const;
  bool shards_parameters() const { return options_.sharding.what == Sharded::Parameters; }
  // Returns the ranges that this rank updates: everything, or its shard of every unit, in the order of the units.
  const std::vector<OwnedRange>& owned() const { return owned_; }
  // Returns this rank's part of a unit's gradients from the use at index `place` of its parameters' local_uses, if uses
  // are summed apart: reproducible gradients on disk. REQUIRES: gradients are sharded; else `place` is 0.
  at::Tensor owned_grad(int unit, int place) const;
  bool is_sharded() const { return options_.sharding.what != Sharded::Nothing; }
  // Returns the units; empty if nothing is sharded.
  const std::vector<ShardUnit>& units() const { return layout_.units; }
  int unit_of(const Parameter& param) const { return layout_.unit_of_param[param.index]; }
  // Returns the whole data of a unit, 1-D.
  const at::Tensor& unit_data(int unit) const { return data_->unit(unit); }

  // If parameters are sharded, the trained and the frozen ones of a block are gathered by themselves. Such a unit has
  // the number of its unit or, if it is one of frozen parameters, units().size() more.
  int num_gathered() const { return static_cast<int>(layout_.units.size() + frozen_layout_.units.size()); }
  const std::vector<int>& gathered_by_block(int block) const { return gathered_by_block_[block]; }
  // Returns this rank's part and the whole of a unit's data. The whole, and the parameters' data, have memory only
  // between allocate_unit() and free_unit(), and the caller gathers their values. At other times, reading them throws a
  // c10::Error that names the parameters.
  at::Tensor own_part(int gathered) const;
  const at::Tensor& gathered_data(int gathered) const;
  const Parameter& first_param(int gathered) const;  // of the unit
  void allocate_unit(int gathered);
  void free_unit(int gathered);

 private:
  int64_t extent(const Parameter& param) const;
  int64_t unit_step() const;
  bool rounds() const;  // masters to data of another type
  void open_disk();
  int64_t gradient_elements_on_disk() const;
  bool of_frozen(int gathered) const { return gathered >= std::ssize(layout_.units); }
  void allocate();
  at::Tensor new_masters() const;
  void make_views();
  void make_owned();
  void list_gathered(const std::vector<layout::BlockSpec>& blocks);
  void fill_masters();
  void fill_units();
  void fill_frozen();

  StoreOptions options_;
  at::ScalarType master_type_;
  std::vector<Parameter> params_, frozen_;
  FlatLayout layout_, frozen_layout_;
  int64_t num_extra_ = 0;
  std::optional<FlatData> data_, frozen_data_;
  std::shared_ptr<DiskTensors> disk_;
  at::Tensor flat_master_, flat_grads_;
  std::vector<std::vector<int>> gathered_by_block_;
  std::vector<OwnedRange> owned_;
};

}  // namespace braid::param
