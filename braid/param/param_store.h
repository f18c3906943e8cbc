// The parameters and gradients of one rank as slices of flat buffers. It knows no autograd, optimizer or communicator.
//
//   data   | wte | wpe | ln.w | ln.b | qkv.w | ...          one buffer, slices aligned to kAlign elements
//   master | wte | wpe | ln.w | ln.b | qkv.w | ...          float32, when data is bfloat16 or float16; else data itself
//   grads  | wte:0 | wpe:0 | ln.w:0 | ... | wte:1            one slice per (parameter, use) in reproducible mode,
//                                                           one per parameter in fast mode
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/param/param_spec.h"

namespace braid {

enum class Reduction { Fast, Reproducible };

// A parameter's gradient from one of its uses. `slice` views the flat gradient buffer.
struct UseGrad {
  int use = 0;
  at::Tensor slice;
};

struct Parameter {
  std::string name;
  Placement placement;
  Init init;
  WeightDecay decay = WeightDecay::Yes;
  int index = 0;                // place in ParamStore::params()
  int uses = 1;                 // in the whole model
  std::vector<int> local_uses;  // the uses that blocks on this rank make, ascending
  int64_t offset = 0;           // of `data` and `main_grad` in the flat buffers, in elements
  at::Tensor data;              // local shape, requires_grad; what layers compute with
  at::Tensor master;            // local shape; what the optimizer updates and checkpoints hold
  at::Tensor main_grad;  // local shape; the gradient the optimizer reads. Views the slice of the first local use.
  std::vector<UseGrad> use_grads;  // fast: all share main_grad; reproducible: one slice each, added once at the end

  int64_t num_elements() const { return main_grad.numel(); }
};

class ParamStore {
 public:
  static constexpr int64_t kAlign = 1024;  // elements; also the block of reproducible norms, so shards can cut here

  // Allocates and initialises. `blocks` are this rank's; parameters of equal name become one. `data` says the data's
  // dtype, float32, float64, bfloat16 or float16, and where all of it is. Masters and gradients are float64 for
  // float64, else float32. Initial values are the same on every device.
  ParamStore(const std::vector<BlockSpec>& blocks, Reduction reduction, const at::TensorOptions& data, uint64_t seed);
  ParamStore(const ParamStore&) = delete;

  Parameter& operator[](const std::string& name);  // check() fails when there is none
  std::vector<Parameter>& params() { return params_; }
  const std::vector<Parameter>& params() const { return params_; }
  const at::Tensor& flat_data() const { return flat_data_; }
  const at::Tensor& flat_master() const { return flat_master_; }  // is flat_data() when their types are the same
  // From now on the parameters' data are `flat_data`, laid out as before, in leaves of their own: what was computed
  // with the data so far keeps them. Masters move along where they are the data.
  void bind(const at::Tensor& flat_data);
  // After writing masters: data becomes the masters rounded, to nearest even.
  void round_masters();
  // The first part is parallel to flat_data(); extra use slices follow it.
  const at::Tensor& flat_grads() const { return flat_grads_; }
  int64_t num_flat() const { return flat_data_.numel(); }
  Reduction reduction() const { return reduction_; }

 private:
  void fill_masters(uint64_t seed);

  Reduction reduction_;
  at::Tensor flat_data_, flat_master_, flat_grads_;
  std::vector<Parameter> params_;
};

}  // namespace braid
