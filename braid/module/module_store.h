// The trainable parameters of a user's modules in a ParamStore's flat buffers. The modules' own tensors become views of
// these buffers, so replication works on flat buffers, and the modules work as before. A layer is a block of the store.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "braid/base/errors.h"
#include "braid/module/layer_list.h"
#include "braid/param/param_store.h"

namespace braid::modules {

// A copy of the values of buffers, such as a batch norm's running statistics. The destructor restores them.
class KeptBuffers {
 public:
  explicit KeptBuffers(Tensors buffers);
  ~KeptBuffers();
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  Tensors buffers_, kept_;
};

// Returns a problem for each trainable parameter that a store cannot hold: all must be of one type, float32 or float64,
// and on the host, and no other parameter or buffer of the layers may have their memory.
std::vector<Problem> storage_problems(const LayerList& layers);

class ModuleStore {
 public:
  // Stores every parameter that requires a gradient, each once, with its value. It is named by its layer and its number
  // there. Parameters of two dims or more are marked for weight decay. Throws ConfigError with storage_problems(), if
  // there are none, and with what is wrong with the folders of `disk`.
  ModuleStore(const LayerList& layers, const param::Sharding& sharding, const std::optional<param::DiskSpace>& disk);

  param::ParamStore& store() const { return *store_; }
  const Tensors& parameters() const { return parameters_; }  // the modules' own, in the order of store().params()
  // Returns the tensors that an optimizer on this rank updates: the modules' parameters or, under sharding, this rank's
  // range of each unit, 1-D.
  const Tensors& updated() const { return updated_; }
  // Sets .grad of every tensor of updated() to its gradient in the store. A frozen parameter gets none, and its
  // gradient in the store becomes zero: compression or an earlier microbatch may have added to it.
  void bind_gradients() const;
  // Clears the store's gradients of parameters whose .grad was reset, for example by zero_grad(). REQUIRES: gradients
  // are not sharded.
  void clear_reset_gradients() const;
  // Returns true if the module's tensor still is the store's slice. torch::load, .to() and set_data() give it other
  // memory, which is not in the store.
  bool holds(const param::Parameter& param) const;
  // Copies the part of `values` that this rank keeps into the store, and makes the module's tensor the store's slice
  // again.
  void take_over(const param::Parameter& param, const at::Tensor& values) const;
  // Called after values were written into updated(). Those on disk are compared with these from now on.
  void note_written() const;
  // Increments the version counters of the modules' parameters. Backward through a graph recorded before the update
  // then throws.
  void note_update() const;

 private:
  std::vector<layout::BlockSpec> collect(const LayerList& layers);
  void move_in();
  void move_in(const param::Parameter& param);

  Tensors parameters_;
  std::unique_ptr<param::ParamStore> store_;
  Tensors updated_;
};

}  // namespace braid::modules
