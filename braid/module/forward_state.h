// The state that a layer's forward reads and changes besides its inputs and parameters, so that the forward can run
// again with the same result: buffers, training mode, MicrobatchListeners, the process-wide random generator of the
// CPU, and autocast on the CPU.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "braid/module/layer_facts.h"
#include "braid/module/layer_list.h"

namespace braid::modules {

// A scope in which autocast makes a new cast of a parameter at each use. Casts that it keeps would carry one forward's
// graph into another's.
class WithoutCastCache {
 public:
  WithoutCastCache();
  ~WithoutCastCache();
  WithoutCastCache(const WithoutCastCache&) = delete;

 private:
  const bool before_;
};

class ForwardState {
 public:
  // Captures the state before a forward of `layer`, except that of the generator. Throws ConfigError if a module of the
  // layer is a MicrobatchListener without capture_state().
  explicit ForwardState(const Layer& layer);

  // Called after the forward. Frees the copies of buffers that it has not changed, and returns these buffers.
  Tensors drop_unchanged();
  // Sets the generator's state before the forward. Not called if the forward drew no numbers from it.
  void set_generator(at::Tensor state) { generator_ = std::move(state); }

 private:
  friend class ForwardScope;
  struct Now {};
  ForwardState(Now, const Layer& layer, const ForwardState& like);  // the present state of what `like` has
  void restore() const;
  void restore_autocast() const;

  std::vector<std::function<void()>> listeners_;
  ModuleModes modes_;
  struct Buffer {
    at::Tensor buffer, value;
    int64_t version;  // of the buffer when the value was copied
  };
  std::vector<Buffer> buffers_;
  bool autocasts_;
  at::ScalarType cast_type_;
  at::Tensor generator_;
};

// A scope in which the state is the captured one. Afterwards it is as before.
class ForwardScope {
 public:
  // `then` and `layer` outlive this. `layer` is the layer of `then`.
  ForwardScope(const ForwardState& then, const Layer& layer);
  ~ForwardScope();
  ForwardScope(const ForwardScope&) = delete;
  // Called after the forward, before its backward: the generator and autocast are as before the scope again. Buffers
  // are not, because the graph may have saved them.
  void end_forward();

 private:
  const at::Tensor generator_;  // the state before the scope; undefined: it is not set
  bool in_forward_ = true;
  const WithoutCastCache casts_;
  const ForwardState before_;
};

}  // namespace braid::modules
