// The parameters and gradients of one rank as slices of flat buffers.
//
//   data   | wte | wpe | ln.w | ln.b | qkv.w | ...          one buffer, slices aligned to kAlign elements
//   master | wte | wpe | ln.w | ln.b | qkv.w | ...          float32, when data is bfloat16 or float16; else data itself
//   grads  | wte:0 | wpe:0 | ln.w:0 | ... | wte:1            one slice per (parameter, use) in reproducible mode,
//                                                           one per parameter in fast mode
//
// If the buffers are sharded (sharding.h), a rank holds only its owned ranges of some of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/layout/param_spec.h"
#include "braid/param/sharding.h"
#include "braid/spec/train_spec.h"

namespace braid::param {

// A parameter's gradient from one of its uses. `slice` is a view of the flat gradient buffer.
struct UseGrad {
  int use = 0;
  at::Tensor slice;
};

struct Parameter {
  std::string name;
  mesh::Placement placement;
  model::Init init;
  model::WeightDecay decay = model::WeightDecay::Yes;
  model::LinearMap linear = model::LinearMap::No;
  int index = 0;                // index in ParamStore::params()
  int uses = 1;                 // number of uses in the whole model
  std::vector<int> local_uses;  // the uses that blocks on this rank make, ascending
  int64_t offset = 0;           // offset of `data` and `main_grad` in the flat buffers, in elements
  at::Tensor data;              // local shape, requires_grad; the weights that layers use
  at::Tensor master;            // local shape; the weights that the optimizer updates. Undefined if states are sharded
  // Local shape; the gradient of this rank, a view of the slice of the first local use. Undefined if gradients are
  // sharded.
  at::Tensor main_grad;
  // Fast: all are main_grad; reproducible: one slice each, added up at the end of the step.
  std::vector<UseGrad> use_grads;

  int64_t num_elements() const { return braid::mesh::num_elements(placement.local_shape); }
};

struct StoreOptions {
  Reduction reduction = Reduction::Fast;
  at::TensorOptions data;  // the parameters' dtype and device
  uint64_t seed = 0;
  Sharding sharding = {};
};

class ParamStore {
 public:
  // The alignment of slices, in elements. It is also the block of reproducible norms, so shards can be cut here.
  static constexpr int64_t kAlign = 1024;

  // Allocates and initialises. `blocks` are this rank's; parameters of equal name become one. `data` gives the data's
  // dtype (float32, float64, bfloat16 or float16) and the device of all buffers. Masters and gradients are float64 if
  // the data are, else float32. Initial values are the same on every device.
  ParamStore(const std::vector<layout::BlockSpec>& blocks, Reduction reduction, const at::TensorOptions& data,
             uint64_t seed)
      : ParamStore(blocks, {reduction, data, seed}) {}
  ParamStore(const std::vector<layout::BlockSpec>& blocks, const StoreOptions& options);
  ParamStore(const ParamStore&) = delete;

  Parameter& operator[](const std::string& name);  // check() fails if there is none
  std::vector<Parameter>& params() { return params_; }
  const std::vector<Parameter>& params() const { return params_; }
  // Returns the whole buffer. If parameters are sharded, returns the owned ranges, one after another.
  const at::Tensor& flat_data() const { return flat_data_; }
  // Returns flat_data() if masters are the data. Otherwise returns the owned ranges, one after another; without
  // sharding, these are the whole buffer.
  const at::Tensor& flat_master() const { return flat_master_; }
  // Returns the whole buffer, in the layout of a whole flat_data(), followed by the slices of further uses. If
  // shards_gradients(), returns the owned ranges, one after another.
  const at::Tensor& flat_grads() const { return flat_grads_; }
  // Makes `flat_data` the parameters' data, in the same layout and in new leaves. Graphs that were built on the
  // previous data keep those. The masters are replaced too if they are the data. check() fails if anything is sharded.
  void bind(const at::Tensor& flat_data);
  // Called after writing masters. Sets the data to the masters rounded to nearest even, in the ranges that this rank
  // owns.
  void round_masters();

  int64_t num_flat() const { return num_flat_; }    // number of elements of a whole buffer
  int64_t num_owned() const { return num_owned_; }  // number of elements that this rank updates
  Reduction reduction() const { return options_.reduction; }

  const Sharding& sharding() const { return options_.sharding; }
  // Returns true if gradients are sharded. In reproducible mode they never are, because their tree is over this rank's
  // microbatches.
  bool shards_gradients() const;
  bool shards_parameters() const { return options_.sharding.what == Sharded::Parameters; }
  // Returns the ranges that this rank updates: everything, or its shard of every unit, in the order of the units.
  const std::vector<OwnedRange>& owned() const { return owned_; }
  // Returns the units; empty if nothing is sharded.
  const std::vector<ShardUnit>& units() const { return units_; }
  const std::vector<int>& units_of_block(int block) const { return units_of_block_[block]; }
  int unit_of(const Parameter& param) const { return unit_of_param_[param.index]; }
  // Returns the whole data of a unit, 1-D. If parameters are sharded, this tensor and the parameters' data have memory
  // only between allocate_unit() and free_unit(), and the caller gathers their values. At other times, reading them
  // throws a c10::Error that names the parameters.
  const at::Tensor& unit_data(int unit) const { return unit_data_[unit]; }
  void allocate_unit(int unit);
  void free_unit(int unit);

 private:
  void lay_out(const std::vector<layout::BlockSpec>& blocks);
  int64_t extent(const Parameter& param) const;
  void allocate();
  void make_views();
  void make_data_views();
  void make_owned();
  void fill_masters();
  void fill_units();

  StoreOptions options_;
  at::ScalarType master_type_;
  std::vector<Parameter> params_;
  int64_t num_flat_ = 0, num_extra_ = 0, num_owned_ = 0;
  at::Tensor flat_data_, flat_master_, flat_grads_;
  std::vector<ShardUnit> units_;
  std::vector<std::vector<int>> units_of_block_;
  std::vector<int> unit_of_param_;
  std::vector<at::Tensor> unit_data_;
  std::vector<OwnedRange> owned_;
};

}  // namespace braid::param
