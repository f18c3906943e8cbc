// The modules of some layers that listen, each with its place in the model.
#pragma once

#include <vector>

#include "braid/module/layer_list.h"
#include "braid/module/microbatch_listener.h"

namespace braid::modules {

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
