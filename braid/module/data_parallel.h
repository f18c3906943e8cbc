// Data parallelism for any torch modules. Every rank runs the whole model on its part of a minibatch. Gradients are
// averaged, and optimizer states, gradients and parameters may be sharded over the ranks (ZeRO).
//
//   run_ranks(4, [&](Communicator& world) {
//     torch::nn::Sequential net = make_net();                      // one per rank
//     DataParallel model(LayerList().add(net), world, {.sync = {.zero = 2}});
//     torch::optim::AdamW optimizer(model.parameters(), 1e-3);
//     for (const auto& [images, classes] : batches(world.rank())) {
//       const auto loss = torch::cross_entropy_loss(model.forward(images), classes);
//       model.backward(loss);
//       model.step(optimizer);
//     }
//   });
//
// Guarantee: if gradients are all-reduced, parameters become, to rounding, what one rank would compute with the mean of
// the ranks' losses. If a rank's loss is a mean over labels or tokens, and ranks have unequal numbers of these, that is
// not the mean over all of them. Then use sum / mean(count, world) as the loss. The optimizer must treat elements one
// by one (SGD, Adam and its variants): under sync.zero it sees flat ranges, not shapes. Gradients are cleared by
// step(), not by zero_grad(). Between steps `.grad` belongs to this class. A layer that works in place writes the
// caller's tensor.
//
// If ranks are threads of one process, modules that draw from the process-wide random generator (torch::nn::Dropout)
// are refused by name. Use KeyedDropout, or ranks that are processes (launch). One rank alone may have them, as in
// torch: if another thread of the process draws too, each thread's numbers depend on the other's timing. A
// MicrobatchListener is notified of a new microbatch for every backward of its rank. savable_model.h describes saving
// and loading. For models that do not fit in memory see model_memory.h (parameters and gradients on disk),
// optimizer_on_disk.h, activations_on_disk.h, and layer_options.h (recomputed activations).
//
// Two kinds of changes to the modules after construction are supported:
// * If values were loaded on all ranks (torch::load, set_data), the next step() copies rank 0's to all ranks, except
//   with diloco and parameter servers. Those of frozen parameters are copied with every sync.replication.
// * A parameter frozen on all ranks is left out, if gradients are all-reduced, sync.zero is 0 and all is in memory.
// After any other change, the next backward throws ConfigError naming the parameters. A change on only some ranks ends
// in ConfigError or CommError. Make another DataParallel for such changes; with sync.zero = 3 or parameters on disk,
// make it inside with_whole_parameters() of the first.
#pragma once

#include <functional>
#include <memory>

#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/module/model_memory.h"
#include "braid/module/optimizer_on_disk.h"
#include "braid/module/savable_model.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"

namespace torch::optim {
class Optimizer;
}

namespace braid {

enum class GradientScale { Average, Sum };  // how the ranks' gradients are combined

// The optimizer of parameter servers. `kind` is any that updates element by element. The other fields are those of
// OptimizerSpec; a kind uses the fields that it reads there. Vectors have no weight decay. step(lr) passes the learning
// rate, and clip_grad_norm() clips.
struct ServerOptimizer {
  OptimizerKind kind = OptimizerKind::AdamW;
  double momentum = OptimizerSpec().momentum;
  double beta1 = OptimizerSpec().beta1;
  double beta2 = OptimizerSpec().beta2;
  double eps = OptimizerSpec().eps;
  double weight_decay = OptimizerSpec().weight_decay;
};

class DataParallel : public modules::SavableModel {
 public:
  struct Options {
    SyncSpec sync = {};              // any replication; parameter servers need thread ranks
    ServerOptimizer optimizer = {};  // optimizer of parameter servers
    GradientScale scale = GradientScale::Average;
    ModelMemory memory = {};  // where parameters and gradients are between their uses
    int64_t first_step = 0;   // number of the first step, if training resumes
  };

  // Collective over `world`, which outlives this. Parameters and buffers of all ranks become those of rank 0. Ranks
  // that are threads have modules of their own. ZeRO stage 3, or parameters on disk, gathers and frees one layer at a
  // time. Otherwise a module whose forward the caller runs may be the only layer. Throws ConfigError with all problems,
  // the same on all ranks.
  DataParallel(LayerList layers, Communicator& world, Options options);
  DataParallel(LayerList layers, Communicator& world) : DataParallel(std::move(layers), world, Options()) {}
  ~DataParallel();

  // Returns the tensors that an optimizer on this rank updates.
  const Tensors& parameters() const;

  // Runs all layers, one after another.
  at::Tensor forward(const at::Tensor& input);
  Tensors forward(const Tensors& inputs);

  // Add the gradients of `loss`, a scalar. backward() is the last call of a step, and starts sending gradients as they
  // become ready. accumulate() is for earlier calls; it keeps gradients on this rank if they are whole (stages 0 and
  // 1, in memory). Parameters that the loss does not depend on get zero. Throws RunError if a disk fails. After a
  // backward that threw, the gradients of its step are incomplete, and backward() and step() throw RunError; save()
  // does not.
  //
  // With sync.zero = 3 or parameters on disk, a second backward (create_graph) is not supported. All ranks run
  // the same forwards with gradients, and their losses depend on the same ones, though not on the same layers of them.
  // If the loss does not depend on an earlier forward of the step that ran with gradients, all gradients stay whole on
  // the ranks until its backward ends.
  void accumulate(const at::Tensor& loss);
  void backward(const at::Tensor& loss);
  // Scales all gradients so that their norm over the whole model is at most `largest`, as
  // torch::nn::utils::clip_grad_norm_ does. Returns the norm before scaling. REQUIRES: backward() was called.
  double clip_grad_norm(double largest);
  // Waits for the gradients, lets `optimizer` update the parameters, and clears the gradients. Afterwards all ranks
  // have the new parameters. If the ranks' parameters are equal after this step, all ranks also have rank 0's buffers
  // (running statistics of a batch norm). Throws ConfigError if `optimizer` has none of parameters(). Then no
  // parameter has changed, and an optimizer that has some can make the step.
  void step(torch::optim::Optimizer& optimizer);
  void step(OptimizerOnDisk& optimizer);
  // Same, with any function that updates parameters() from their .grad. Throws ConfigError if some of them are on disk,
  // where only an OptimizerOnDisk updates.
  void step(const std::function<void()>& update);
  // For sync.replication "parameter-server", where the servers hold the optimizer. Sends the gradients, and fetches
  // parameters as sync.consistency and sync.pull_every specify.
  void step(double lr);

  // Collective. Calls `body` while all ranks have the newest parameters, whole, and rank 0's buffers, for example to
  // evaluate, save or print them. If ranks train independently (local SGD, inside a period), the parameters are the
  // mean over all ranks, and each rank has its own again afterwards. `body` must not write them in place. Under
  // sync.zero = 3 or with parameters on disk, call torch::load in `body`.
  void with_whole_parameters(const std::function<void()>& body) override;
  // Returns the bytes of gradients and parameters that this rank has sent for training since construction, as the ring
  // algorithm counts them.
  int64_t bytes_sent() const;

 private:
  modules::ModelPart part() override;
  void resume_after(int64_t steps) override;

  class State;
  std::unique_ptr<State> state_;
};

// Collective. Returns the mean of a metric over the ranks.
double mean(double value, Communicator& world);

// Collective. Copies the state of rank 0's optimizer to all ranks, for example after loading a checkpoint on rank 0.
// Not for sync.zero, where each rank has its own state.
void broadcast_state(torch::optim::Optimizer& optimizer, Communicator& world);

}  // namespace braid
