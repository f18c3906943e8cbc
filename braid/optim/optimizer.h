// The interface of optimizers, which update the master weights that a rank owns from its gradients. Steps, saves and
// resumes use this interface only. A new optimizer is a class, or a rule of element_update.h, and a line of
// make_optimizer().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/optim/element_update.h"
#include "braid/param/param_store.h"
#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

// The inputs of one optimizer step.
struct OptimizerStep {
  double lr = 0;
  double grad_scale = 1;  // factor on every gradient (norm clipping)
  bool operator==(const OptimizerStep&) const = default;
};

// Consecutive elements of the flat buffers within one owned range, and their position in an optimizer state.
struct StateStretch {
  int range = 0;               // index in store.owned()
  int64_t begin = 0, end = 0;  // elements of the flat buffers; multiples of kAlign
  int64_t place = 0;           // index of the first element in the state

  int64_t length() const { return end - begin; }
};

// A state: a number that an optimizer keeps for every element of the parameters, or of some of them.
struct OptimizerState {
  std::string name;  // "adamw.first_moment"; a checkpoint stores it under this name, "/" and the parameter's name
  std::vector<StateStretch> stretches;  // the parts that this rank owns of the parameters with this state
  at::Tensor flat;         // 1-D, of the masters' type or, with OptimizerSpec::state_dtype, bfloat16, or bytes: codes
  at::Tensor scales = {};  // of codes: 1-D, float32, of each kStateBlock elements; undefined unless `flat` has bytes
  StateSign sign = StateSign::Any;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates the masters that this rank owns, and their data, the rounded masters. Padding stays zero. The result is
  // bitwise the same for every number of threads and every sharding of masters. On a device, the result is the same in
  // every run; the work is enqueued, and step() does not wait for it. A later backward over weights that were saved
  // before the step fails, because their version has changed. Collective if ranks hold parts of a matrix that is
  // updated as a whole.
  void step(const OptimizerStep& step);

  // If the optimizer's states are on a disk, a step may be made in parts while gradients become final: begin(), any
  // number of advance(), then step() with the same OptimizerStep. begin() returns false, and nothing was done, if the
  // optimizer does not do that. The caller of advance() promises that the gradients of all elements of the flat buffers
  // from `offset` on are final where this rank owns them, and that no pass of the step reads their data any more. All
  // throw RunError if the disk fails.
  //
  // If the disk has two copies (param::Copies), the parts are speculative: step() with another OptimizerStep first
  // undoes them, and withdraw() ends the step with nothing changed. The bits are those of step() alone.
  virtual bool begin(const OptimizerStep& step) { return false; }
  virtual void advance(int64_t offset) {}
  virtual void withdraw() {}  // does nothing if nothing was begun, or if it was not speculative

  int64_t num_steps() const { return num_steps_; }
  void set_num_steps(int64_t steps) { num_steps_ = steps; }  // after loading the states
  // Returns the states, zeros at first. They are allocated at the first step or the first call of states(), so a rank
  // whose steps are all made by servers allocates none. Returns the same tensors at every call, until release_states().
  const std::vector<OptimizerState>& states();
  // Frees the states' memory. The next states() are zeros again.
  void release_states() { states_.clear(); }

 protected:
  explicit Optimizer(param::ParamStore& store) : store_(store) {}
  // Returns the states before the first step.
  virtual std::vector<OptimizerState> zero_states() const = 0;
  // Makes update number num_steps().
  virtual void update(const OptimizerStep& step) = 0;

  param::ParamStore& store_;

 private:
  std::vector<OptimizerState> states_;
  int64_t num_steps_ = 0;
};

// Returns the number of states per element of a parameter.
int num_states(const OptimizerSpec& spec, model::LinearMap linear);

// Makes the optimizer that spec.kind names, for this rank's shard of `store`. The ranks of `shards` hold shards of the
// masters, those of `tensor` slices of placements sharded along Axis::Tensor; null: this rank alone. REQUIRES: `store`
// and the groups outlive it.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec, param::ParamStore& store,
                                          Communicator* shards = nullptr, Communicator* tensor = nullptr);

}  // namespace braid::optim
