// An interface for modules that depend on the step and the microbatch: their random numbers are a function of the
// microbatch, or their statistics are those of a whole minibatch. ModulePipeline and DataParallel find such modules
// among theirs, at any depth.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "braid/module/layer_list.h"

namespace braid {
class Communicator;
}  // namespace braid

namespace braid::modules {

enum class ForwardPurpose {
  Training,
  Evaluation,
  ShapeTrace,  // a first forward that only determines shapes; it must not change the module
};

struct MicrobatchContext {
  ForwardPurpose purpose = ForwardPurpose::Training;
  int64_t step = 0;   // steps before this one
  int64_t micro = 0;  // number in the step, counted over all data ranks
  int64_t place = 0;  // unique number of the module, the same wherever the model is cut
};

class MicrobatchListener {
 public:
  virtual ~MicrobatchListener() = default;
  // Called before each forward of the module's stage. Under DataParallel, a microbatch is all computation that one
  // backward covers; there this is called before the first forward of that computation.
  virtual void begin_microbatch(const MicrobatchContext& context) = 0;
  // Called after the last microbatch of a training step, by all ranks of `data`. These are the ranks that hold this
  // module.
  virtual void end_step(Communicator& data) = 0;
  // Returns a function that sets the module's state of the microbatch and the step to the present one. A recomputed
  // layer (layer_options.h) calls it before its forward runs again, and another one afterwards. May be empty; then the
  // module cannot be in a recomputed layer.
  virtual std::function<void()> capture_state() { return {}; }
};

// The listeners among the modules of some layers, each with its place in the model.
class ListenerList {
 public:
  // Finds the listeners within layers [first, last) of a model.
  ListenerList(const LayerList& layers, int first, int last);

  // Calls begin_microbatch() of each listener, with its own place as context.place.
  void begin_microbatch(MicrobatchContext context) const;
  // Calls end_step() of each listener. Collective over `data` if there are any.
  void end_step(Communicator& data) const;

 private:
  struct Listener {
    MicrobatchListener* module;
    int64_t place;
  };
  std::vector<Listener> listeners_;
};

}  // namespace braid::modules
