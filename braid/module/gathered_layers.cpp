// Adds autograd nodes before and behind a layer. Auxiliary losses are outputs of it too.
#include "braid/module/gathered_layers.h"

#include <c10/core/GradMode.h>

#include <memory>
#include <optional>

#include "braid/base/errors.h"
#include "braid/module/auxiliary_loss.h"
#include "braid/module/model_part.h"
#include "braid/module/synced_modules.h"

namespace braid::modules {

Tensors GatheredLayers::run(int layer, const Tensors& inputs, const std::function<Tensors(const Tensors&)>& run) try {
  Tensors outputs, all;
  {
    const WholeLayer whole(parameters_, layer);
    const AuxiliaryLossScope scope;
    outputs = all = run(with_call(inputs, layer, &GatheredLayers::end_backward_of));
    all.insert(all.end(), scope.weighted().begin(), scope.weighted().end());
    all = with_call(all, layer, &GatheredLayers::begin_backward_of);
  }
  for (size_t i = outputs.size(); i < all.size(); ++i) contribute_auxiliary_loss(all[i]);
  all.resize(outputs.size());
  return all;
} catch (...) {
  parameters_.drop_prefetched();
  throw;
}

Tensors GatheredLayers::with_call(const Tensors& tensors, int layer, Call call) {
  if (!c10::GradMode::is_enabled()) return tensors;
  const std::function<void()> bound = [this, layer, call] { (this->*call)(layer); };
  return with_call_in_backward(tensors, std::make_shared<const std::function<void()>>(bound));
}

// With create_graph autograd would go through the graph of the backward after the parameters are released.
void GatheredLayers::begin_backward_of(int layer) {
  if (c10::GradMode::is_enabled()) {
    throw ConfigError(
        {{"backward", "create_graph",
          "must not be used with sync.zero = 3 or parameters on disk: they are gathered for one backward", ""}});
  }
  if (on_done_from) on_done_from(layer + 1);
  parameters_.acquire(layer, param::Phase::Backward);
  ++held_[static_cast<size_t>(layer)];
}

void GatheredLayers::end_backward_of(int layer) {
  if (held_[static_cast<size_t>(layer)] == 0) return;
  release(layer);
  if (on_done_from) on_done_from(layer);
}

void GatheredLayers::release(int layer) {
  --held_[static_cast<size_t>(layer)];
  parameters_.release(layer, param::Phase::Backward);
}

void GatheredLayers::end_backward() {
  for (size_t layer = 0; layer < held_.size(); ++layer) {
    while (held_[layer] > 0) release(static_cast<int>(layer));
  }
}

void GatheredLayers::give_up() {
  end_backward();
  parameters_.drop_prefetched();
}

}  // namespace braid::modules
