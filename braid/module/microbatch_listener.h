// For modules that must know where in the training they are: whose random numbers are a function of the microbatch, or
// whose statistics are those of a whole minibatch. ModulePipeline and DataParallel find them among their modules,
// however deep.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/module/layer_list.h"

namespace braid {
class Communicator;
}  // namespace braid

namespace braid::modules {

enum class ForwardPurpose {
  Training,
  Evaluation,
  ShapeTrace,  // a first forward that only finds out shapes; the module must be left as it was
};

struct MicrobatchContext {
  ForwardPurpose purpose = ForwardPurpose::Training;
  int64_t step = 0;   // steps before this one
  int64_t micro = 0;  // in the step, over all data ranks
  int64_t place = 0;  // of the module in the model: unlike any other's, and the same wherever the model is cut
};

class MicrobatchListener {
 public:
  virtual ~MicrobatchListener() = default;
  // Before each forward of the module's stage; under DataParallel, where a microbatch is what one backward goes back
  // through, before the first forward that it goes through.
  virtual void begin_microbatch(const MicrobatchContext& context) = 0;
  // After the last microbatch of a training step. `data` are the ranks that hold this module, all of which call it.
  virtual void end_step(Communicator& data) = 0;
};

// The modules of some layers that listen, each with its place in the model.
class ListenerList {
 public:
  // Those within layers [first, last) of a model.
  ListenerList(const LayerList& layers, int first, int last);

  // Tells them which microbatch comes next. `context.place` is set here.
  void begin_microbatch(MicrobatchContext context) const;
  // Collective over `data` where a listener is.
  void end_step(Communicator& data) const;

 private:
  struct Listener {
    MicrobatchListener* module;
    int64_t place;
  };
  std::vector<Listener> listeners_;
};

}  // namespace braid::modules
