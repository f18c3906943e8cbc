// Activations on disk. The tensors that autograd saves in a forward move to a swap space (param/swap_space.h) and come
// back before the backward (vDNN, Rhu et al. 2016; GeePS, Cui et al. 2016; ZeRO-Infinity, Rajbhandari et al.
// 2021, section 5.1). Autograd calls a pair of hooks for each tensor that it saves: PyTorch's saved-tensor hooks, which
// C++ has for a whole graph only through the engine, so this file installs an engine that has them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "braid/param/swap_space.h"

namespace braid::param {

// The tensors that autograd saves in one forward, such as that of a segment for one microbatch. A tensor stays in
// memory if it is small, is no activation, or finds no room on the disk.
class SavedGraph {
 public:
  // Returns true for memory that moves. Parameters do not: they are there in any case.
  using Moves = std::function<bool(const c10::Storage&)>;

  SavedGraph(std::shared_ptr<SwapSpace> space, Moves moves) : space_(std::move(space)), moves_(std::move(moves)) {}

  // A scope in which what autograd saves on this thread belongs to `graph`.
  class Scope {
   public:
    // REQUIRES: `graph` outlives this.
    explicit Scope(SavedGraph& graph);
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

  // Starts to read what is on disk, after the copies of other graphs are written and freed. Copies of this one are used
  // as they are.
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
  std::shared_ptr<Swapped> out(const at::Tensor& tensor);
  bool moves(const at::Tensor& tensor) const;

  const std::shared_ptr<SwapSpace> space_;
  const Moves moves_;
  std::weak_ptr<Swapped> last_;
  std::map<Contents, std::weak_ptr<Swapped>> saved_;
  std::shared_ptr<const class MovedTensor> input_;
};

// Returns a tensor with the shape of `output` and its edge into the graph, but without its memory.
at::Tensor root_like(const at::Tensor& output);
// Lets go of the memory of a leaf of a graph. Its gradient can still be accumulated.
void free_leaf(const at::Tensor& leaf);

}  // namespace braid::param
