// Activations on disk for any torch modules: what autograd saves in forward is on disk until backward reads it.
//
//   ActivationsOnDisk disk({.folders = {"/scratch"}, .bytes = int64_t{20} << 30});
//   {
//     const auto saving = disk.forward(model->parameters());
//     loss = torch::mse_loss(model->forward(x), y);
//   }
//   loss.backward();
//
// The bits are those of training in memory. Backward reads the tensors in the order opposite to that of forward, some
// ahead of their use. Memory that finds no room on the disk stays. A tensor must not be changed in place after it was
// saved: autograd does not notice that here.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/param/saved_graph.h"

namespace braid {

class ActivationsOnDisk {
 public:
  struct Options {
    std::vector<std::string> folders;          // a file without a name in each
    int64_t bytes = 0;                         // size of the space
    int64_t window_bytes = int64_t{64} << 20;  // memory for writes under way, and as much for reads ahead
  };
  // Opens the space. Throws ConfigError with all that is wrong with the folders.
  explicit ActivationsOnDisk(const Options& options);

  // While this lives, what autograd saves on this thread goes to disk. Later backwards read it, in any scope or none.
  class Forward {
   public:
    Forward(std::shared_ptr<param::SwapSpace> space, const std::vector<at::Tensor>& stays);

   private:
    param::SavedGraph graph_;
    param::SavedGraph::Scope scope_;
  };
  // Memory of `stays` is not moved: the modules' own parameters (not a DataParallel's parameters(), which may be
  // shards), and other memory that outlives the backward. Forward and backward throw RunError if the disk fails.
  Forward forward(const std::vector<at::Tensor>& stays) const { return {space_, stays}; }

  int64_t bytes_written() const { return space_->bytes_written(); }
  int64_t bytes_read() const { return space_->bytes_read(); }

 private:
  std::shared_ptr<param::SwapSpace> space_;
};

}  // namespace braid
