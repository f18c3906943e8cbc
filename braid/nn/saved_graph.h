// Activations on disk. What autograd saves of a segment's forward moves to a swap space (param/swap_space.h), and comes
// back before the segment's backward (vDNN, Rhu et al. 2016; GeePS, Cui et al. 2016; ZeRO-Infinity, Rajbhandari et al.
// 2021, section 5.1). Autograd calls a pair of hooks for each tensor that it saves: PyTorch's saved-tensor hooks, which
// C++ has for a whole graph only through the engine, so this file installs an engine that has them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "braid/param/swap_space.h"

namespace braid::nn {

// What one segment saves of one microbatch. Tensors that are small, are no activations, or find no room on the disk
// stay in memory.
class SavedGraph {
 public:
  explicit SavedGraph(std::shared_ptr<param::SwapSpace> space) : space_(std::move(space)) {}

  // A scope in which what autograd saves on this thread belongs to `graph`.
  class Scope {
   public:
    // `input` is saved like an activation. REQUIRES: `graph` outlives this.
    Scope(SavedGraph& graph, const at::Tensor& input);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    SavedGraph* const before_;
  };

  // Returns true in a scope.
  static bool moves_here();

  // Moves a tensor that is no part of a graph, and undefines `input`; a tensor that stays in memory is left as it is.
  void move_input(at::Tensor& input);
  bool has_input() const { return input_ != nullptr; }
  // Returns the tensor that was moved, once. REQUIRES: has_input().
  at::Tensor input();

  // Starts to read what is on disk. Copies of other parts that are still written are freed first, unless some of this
  // one are among them.
  void start_in();

 private:
  friend class MovingHooks;
  // Identifies contents of memory. The pointer keeps the memory's address from being used again.
  struct Contents {
    c10::weak_intrusive_ptr<c10::StorageImpl> memory;
    int64_t version;
    bool operator<(const Contents& other) const {
      return std::pair(memory._unsafe_get_target(), version) <
             std::pair(other.memory._unsafe_get_target(), other.version);
    }
  };
  std::shared_ptr<param::Swapped> out(const at::Tensor& tensor);
  bool moves(const at::Tensor& tensor) const;

  const std::shared_ptr<param::SwapSpace> space_;
  c10::StorageImpl* input_memory_ = nullptr;  // compared only
  std::map<Contents, std::weak_ptr<param::Swapped>> saved_;
  std::shared_ptr<const class MovedTensor> input_;
};

// Returns a tensor with the shape of `output` and its edge into the graph, but without its memory.
at::Tensor root_like(const at::Tensor& output);
// Lets go of the memory of a leaf of a graph. Its gradient can still be accumulated.
void free_leaf(const at::Tensor& leaf);

}  // namespace braid::nn
