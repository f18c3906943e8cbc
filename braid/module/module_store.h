// The trainable parameters of a user's modules in a ParamStore's flat buffers: the modules' own tensors become views of
// them, so replication works on flat buffers and the modules do not notice. A layer is a block of the store.
#pragma once

#include <memory>
#include <vector>

#include "braid/base/errors.h"
#include "braid/module/layer_list.h"
#include "braid/param/param_store.h"

namespace braid::modules {

// Keeps the values of buffers (batch norm's running statistics and the like); its destructor puts them back.
class KeptBuffers {
 public:
  explicit KeptBuffers(Tensors buffers);
  ~KeptBuffers();
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  Tensors buffers_, kept_;
};

// Returns a problem for each trainable parameter that a store cannot hold. Empty: it can hold all.
std::vector<Problem> storage_problems(const LayerList& layers);

class ModuleStore {
 public:
  // Every parameter that requires a gradient, each once, under the name of its layer and its place there; those of two
  // dims or more are marked for weight decay. All are of one type, float32 or float64, on the host; values are kept.
  // Throws ConfigError naming what is otherwise.
  ModuleStore(const LayerList& layers, const param::Sharding& sharding);

  param::ParamStore& store() const { return *store_; }
  const Tensors& parameters() const { return parameters_; }  // of the modules, in the order of store().params()
  // Returns the tensors that an optimizer on this rank updates: the modules' parameters, or under sharding this rank's
  // range of each unit, 1-D.
  const Tensors& updated() const { return updated_; }
  // Makes .grad of every tensor of updated() its gradient in the store, whatever .grad was set to before. A frozen
  // parameter gets none.
  void bind_gradients() const;
  // Clears the gradients of parameters whose .grad was reset, as zero_grad() does. REQUIRES: gradients are not sharded.
  void clear_reset_gradients() const;
  // Returns true if the module's own tensor still is the store's slice. torch::load, .to() and set_data() give it other
  // memory, which the store does not see.
  bool holds(const param::Parameter& param) const;
  // Takes `values` over, as far as this rank keeps them, and makes the module's tensor the slice again.
  void take_over(const param::Parameter& param, const at::Tensor& values) const;
  // Moves the versions of the modules' parameters: backward through a graph recorded before the update then throws.
  void note_update() const;

 private:
  std::vector<param::BlockSpec> collect(const LayerList& layers);
  void move_in();
  void move_in(const param::Parameter& param);

  Tensors parameters_;
  std::unique_ptr<param::ParamStore> store_;
  Tensors updated_;
};

}  // namespace braid::modules
