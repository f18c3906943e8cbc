// The parameters and gradients of one rank as slices of flat buffers.
//
//   data   | wte | wpe | ln.w | ln.b | qkv.w | ...          one buffer, slices aligned to kAlign elements
//   master | wte | wpe | ln.w | ln.b | qkv.w | ...          float32, when data is bfloat16 or float16; else data itself
//   grads  | wte:0 | wpe:0 | ln.w:0 | ... | wte:1            one slice per (parameter, use) in reproducible mode,
//                                                           one per parameter in fast mode
//
// Where they are sharded (param_spec.h), a rank holds only its owned ranges of some of these buffers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/param/param_spec.h"
#include "braid/spec/train_spec.h"

namespace braid::param {

// A parameter's gradient from one of its uses. `slice` views the flat gradient buffer.
struct UseGrad {
  int use = 0;
  at::Tensor slice;
};

struct Parameter {
  std::string name;
  mesh::Placement placement;
  Init init;
  WeightDecay decay = WeightDecay::Yes;
  LinearMap linear = LinearMap::No;
  int index = 0;                // place in ParamStore::params()
  int uses = 1;                 // in the whole model
  std::vector<int> local_uses;  // the uses that blocks on this rank make, ascending
  int64_t offset = 0;           // of `data` and `main_grad` in the flat buffers, in elements
  at::Tensor data;              // local shape, requires_grad; what layers compute with
  at::Tensor master;            // local shape; what the optimizer updates. Undefined where states are sharded
  at::Tensor main_grad;  // local shape; the gradient of this rank. Views the slice of the first local use. Undefined
                         // where gradients are sharded
  std::vector<UseGrad> use_grads;  // fast: all share main_grad; reproducible: one slice each, added once at the end

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
  static constexpr int64_t kAlign = 1024;  // elements; also the block of reproducible norms, so shards can cut here

  // Allocates and initialises. `blocks` are this rank's; parameters of equal name become one. `data` says the data's
  // dtype, float32, float64, bfloat16 or float16, and the device of everything. Masters and gradients are float64 for
  // float64, else float32. Initial values are the same on every device.
  ParamStore(const std::vector<BlockSpec>& blocks, Reduction reduction, const at::TensorOptions& data, uint64_t seed)
      : ParamStore(blocks, {reduction, data, seed}) {}
  ParamStore(const std::vector<BlockSpec>& blocks, const StoreOptions& options);
  ParamStore(const ParamStore&) = delete;

  Parameter& operator[](const std::string& name);  // check() fails when there is none
  std::vector<Parameter>& params() { return params_; }
  const std::vector<Parameter>& params() const { return params_; }
  // The whole buffer; where parameters are sharded, the owned ranges one after another.
  const at::Tensor& flat_data() const { return flat_data_; }
  // flat_data() itself where masters are the data; else the owned ranges one after another, which is the whole buffer
  // where nothing is sharded.
  const at::Tensor& flat_master() const { return flat_master_; }
  // The whole buffer, parallel to a whole flat_data(), then the slices of further uses; where shards_gradients(), the
  // owned ranges one after another.
  const at::Tensor& flat_grads() const { return flat_grads_; }
  // Makes `flat_data` the parameters' data, in the same layout and in new leaves: graphs that were built on the data
  // before keep those. Masters follow where they are the data. check() fails where anything is sharded.
  void bind(const at::Tensor& flat_data);
  // After writing masters: data becomes the masters rounded, to nearest even, in the ranges that this rank owns.
  void round_masters();

  int64_t num_flat() const { return num_flat_; }    // elements of a whole buffer
  int64_t num_owned() const { return num_owned_; }  // elements of what this rank updates
  Reduction reduction() const { return options_.reduction; }

  const Sharding& sharding() const { return options_.sharding; }
  // Gradients stay whole in reproducible mode, whatever is sharded: their tree is over this rank's microbatches.
  bool shards_gradients() const;
  bool shards_parameters() const { return options_.sharding.what == Sharded::Parameters; }
  // Returns the ranges that this rank updates: everything, or its shard of every unit, in their order.
  const std::vector<OwnedRange>& owned() const { return owned_; }
  // Empty where nothing is sharded.
  const std::vector<ShardUnit>& units() const { return units_; }
  const std::vector<int>& units_of_block(int block) const { return units_of_block_[block]; }
  int unit_of(const Parameter& param) const { return unit_of_param_[param.index]; }
  // The whole data of a unit, 1-D. Where parameters are sharded, it and the parameters' data have memory only between
  // allocate_unit() and free_unit(), with no values but what the caller gathers. At other times reading them throws a
  // c10::Error with the parameters' names.
  const at::Tensor& unit_data(int unit) const { return unit_data_[unit]; }
  void allocate_unit(int unit);
  void free_unit(int unit);

 private:
  void lay_out(const std::vector<BlockSpec>& blocks);
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
