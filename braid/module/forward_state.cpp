// Captures and restores the state of a layer's forward.
#include "braid/module/forward_state.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/microbatch_listener.h"

namespace braid::modules {
namespace {

// Inference tensors have no versions.
int64_t version_of(const at::Tensor& tensor) { return tensor.is_inference() ? 0 : tensor._version(); }

std::vector<std::function<void()>> captured_listeners(const Layer& layer) {
  std::vector<std::function<void()>> captured;
  for (MicrobatchListener* listener : listeners(layer)) {
    captured.push_back(listener->capture_state());
    if (captured.back()) continue;
    throw ConfigError({{cat("layers.", layer.name, ".activations"), "recomputed",
                        "must be kept, because a MicrobatchListener of the layer has no capture_state()", "kept"}});
  }
  return captured;
}

}  // namespace

WithoutCastCache::WithoutCastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}
WithoutCastCache::~WithoutCastCache() { at::autocast::set_autocast_cache_enabled(before_); }

ForwardState::ForwardState(const Layer& layer)
    : listeners_(captured_listeners(layer)),
      modes_(layer),
      autocasts_(at::autocast::is_autocast_enabled(at::kCPU)),
      cast_type_(at::autocast::get_autocast_dtype(at::kCPU)) {
  for (const at::Tensor& buffer : buffers(layer)) {
    buffers_.push_back({buffer, buffer.detach().clone(), version_of(buffer)});
  }
}

ForwardState::ForwardState(Now, const Layer& layer, const ForwardState& like)
    : listeners_(captured_listeners(layer)),
      modes_(layer),
      autocasts_(at::autocast::is_autocast_enabled(at::kCPU)),
      cast_type_(at::autocast::get_autocast_dtype(at::kCPU)) {
  for (const Buffer& each : like.buffers_) {
    buffers_.push_back({each.buffer, each.buffer.detach().clone(), version_of(each.buffer)});
  }
}

// Compares values too, because a batch norm writes its statistics without a new version. A buffer that was written with
// the values that it had is kept: the forward of another microbatch will write it again.
Tensors ForwardState::drop_unchanged() {
  Tensors unchanged;
  std::erase_if(buffers_, [&](const Buffer& each) {
    const bool same = version_of(each.buffer) == each.version && at::equal(each.buffer, each.value);
    if (same) unchanged.push_back(each.buffer);
    return same;
  });
  return unchanged;
}

// Writes buffers without a new version: graphs that have saved them find the same values again after the scope.
void ForwardState::restore() const {
  const c10::AutoGradMode no_grad(false);
  for (const auto& set : listeners_) set();
  modes_.restore();
  for (const Buffer& each : buffers_) each.buffer.variable_data().copy_(each.value);
}

void ForwardState::restore_autocast() const {
  at::autocast::set_autocast_enabled(at::kCPU, autocasts_);
  at::autocast::set_autocast_dtype(at::kCPU, cast_type_);
}

ForwardScope::ForwardScope(const ForwardState& then, const Layer& layer)
    : generator_(then.generator_.defined() ? generator_state() : at::Tensor()),
      before_(ForwardState::Now(), layer, then) {
  then.restore();
  then.restore_autocast();
  if (generator_.defined()) set_generator_state(then.generator_);
}

ForwardScope::~ForwardScope() {
  end_forward();
  before_.restore();
}

void ForwardScope::end_forward() {
  if (!std::exchange(in_forward_, false)) return;
  before_.restore_autocast();
  if (generator_.defined()) set_generator_state(generator_);
}

}  // namespace braid::modules
