// Updates the master weights that a rank owns from its gradients. Steps, saves and resumes use this interface only: a
// new optimizer is a class, or a rule of element_update.h, and a line of make_optimizer().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"
#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

// The inputs of one optimizer step.
struct OptimizerStep {
  double lr = 0;
  double grad_scale = 1;  // multiplies every gradient (norm clipping)
};

// Elements of the flat buffers that lie in one owned range, and where a state has what belongs to them.
struct StateStretch {
  int range = 0;               // of store.owned()
  int64_t begin = 0, end = 0;  // elements of the flat buffers; multiples of kAlign
  int64_t place = 0;           // of the first one's in the state

  int64_t length() const { return end - begin; }
};

// A number that an optimizer keeps for every element of some parameters that it updates.
struct OptimizerState {
  std::string name;                     // "adamw.first_moment"; a checkpoint puts it and a "/" before a parameter's
  std::vector<StateStretch> stretches;  // of whole parameters, as far as this rank owns them
  at::Tensor flat;                      // 1-D, of the masters' type
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates the masters this rank owns, and their data, which are the masters rounded. Padding stays zero. Bitwise the
  // same for every number of threads and however masters are sharded; on a device the same every time, enqueued and not
  // waited for. Backward over weights saved before it fails (their version moves). Collective where ranks hold parts of
  // a matrix that is updated as a whole.
  void step(const OptimizerStep& step);

  int64_t num_steps() const { return num_steps_; }
  void set_num_steps(int64_t steps) { num_steps_ = steps; }  // after loading the states
  // Zeros at first, which take memory from the first step or question on: none where servers make all steps. The same
  // at every call, until they are released.
  const std::vector<OptimizerState>& states();
  // Their memory goes; they are zeros again.
  void release_states() { states_.clear(); }

 protected:
  explicit Optimizer(param::ParamStore& store) : store_(store) {}
  // States as before the first step.
  virtual std::vector<OptimizerState> zero_states() const = 0;
  // Number num_steps().
  virtual void update(const OptimizerStep& step) = 0;

  param::ParamStore& store_;

 private:
  std::vector<OptimizerState> states_;
  int64_t num_steps_ = 0;
};

// The ranks that hold parts of a matrix; null: this one alone. They outlive the optimizer.
struct MatrixGroups {
  Communicator* shards = nullptr;  // hold shards of what the optimizer updates
  Communicator* tensor = nullptr;  // hold slices where a placement is sharded along Axis::Tensor
};

// Returns the number of states per element of a parameter.
int num_states(const OptimizerSpec& spec, param::LinearMap linear);

// Makes the optimizer that spec.kind names, for this rank's shard of `store`, which must outlive it.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec, param::ParamStore& store,
                                          MatrixGroups groups = {});

}  // namespace braid::optim
