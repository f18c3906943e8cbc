// Listeners are numbered by layer, so their places do not depend on the cut of the model.
#include "braid/module/microbatch_listener.h"

#include "braid/module/layer_facts.h"

namespace braid::modules {
namespace {

constexpr int64_t kPlacesPerLayer = int64_t{1} << 20;

}  // namespace

ListenerList::ListenerList(const LayerList& layers, int first, int last) {
  for (int index = first; index < last; ++index) {
    int64_t place = index * kPlacesPerLayer;
    for (auto* listener : listeners(layers[index])) listeners_.push_back({listener, place++});
  }
}

void ListenerList::begin_microbatch(MicrobatchContext context) const {
  for (const Listener& listener : listeners_) {
    context.place = listener.place;
    listener.module->begin_microbatch(context);
  }
}

void ListenerList::end_step(Communicator& data) const {
  for (const Listener& listener : listeners_) listener.module->end_step(data);
}

}  // namespace braid::modules
