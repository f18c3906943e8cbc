// Data parallelism around any torch modules: every rank runs the whole model on its share of a minibatch, gradients are
// averaged, and optimizer states, gradients and parameters may be sharded over the ranks (ZeRO).
//
//   run_ranks(4, [&](Communicator& world) {
//     torch::nn::Sequential net = make_net();                      // a rank's own
//     DataParallel model(LayerList().add(net), world, {.sync = {.zero = 2}});
//     torch::optim::AdamW optimizer(model.parameters(), 1e-3);
//     for (const auto& [images, classes] : batches(world.rank())) {
//       const auto loss = torch::cross_entropy_loss(model.forward(images), classes);
//       model.backward(loss);
//       model.step(optimizer);
//     }
//   });
//
// Promise, where sums keep ranks in step: parameters become what one rank would make of them with the mean of the
// ranks' losses, to rounding. Where a rank's loss is a mean over labels or tokens, of which ranks have unequal numbers,
// that is not the mean over all of them; sum / mean(count, world) is. The optimizer must treat elements one by one
// (SGD, Adam and its kin): under sync.zero it sees flat ranges, not shapes. Gradients are cleared by step(), not by
// zero_grad(); `.grad` belongs to this class between steps. A layer that works in place writes the caller's tensor.
//
// Modules that draw from the process-wide random generator (torch::nn::Dropout) are refused, by name, where ranks are
// threads of one process; KeyedDropout, or ranks that are processes (launch), are the replacements. Modules that listen
// (microbatch_listener.h) hear of a microbatch for every backward of every rank. Saving, loading: savable_model.h.
//
// What is done to the modules afterwards: values loaded on all ranks (torch::load, set_data) are taken over at the next
// step(), as those of rank 0, but for diloco and parameter servers; a parameter frozen on all ranks is left out, where
// gradients are summed and sync.zero is 0. All else, or a change on some ranks only, is refused by name, by ConfigError
// from the next backward. Then make another DataParallel, with sync.zero = 3 in with_whole_parameters() of the first.
#pragma once

#include <functional>
#include <memory>

#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/module/savable_model.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"

namespace torch::optim {
class Optimizer;
}

namespace braid {

enum class GradientScale { Average, Sum };  // of the ranks' gradients

// The optimizer of parameter servers: any kind that updates element by element, with the fields of OptimizerSpec that
// this kind reads. Vectors are not decayed. step(lr) gives the rate, and clip_grad_norm() clips.
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
    SyncSpec sync = {};              // any way of keeping replicas in step; servers need ranks that are threads
    ServerOptimizer optimizer = {};  // of parameter servers
    GradientScale scale = GradientScale::Average;
    int64_t first_step = 0;  // the number of the first step, when a training goes on
  };

  // Collective over `world`, which outlives this. The modules become those of rank 0: parameters and buffers. A layer
  // is what ZeRO stage 3 gathers and frees at once; a module whose forward the caller runs himself may be the only
  // layer, up to stage 2. Throws ConfigError with everything that is wrong, the same on all ranks.
  DataParallel(LayerList layers, Communicator& world, Options options);
  DataParallel(LayerList layers, Communicator& world) : DataParallel(std::move(layers), world, Options()) {}
  ~DataParallel();

  // Returns the tensors that an optimizer on this rank updates.
  const Tensors& parameters() const;

  // All layers, one after another.
  at::Tensor forward(const at::Tensor& input);
  Tensors forward(const Tensors& inputs);

  // Adds the gradients of `loss`, a scalar. With sync.zero = 3 it has no second backward (create_graph). accumulate()
  // keeps them on this rank for now, where they are whole (stages 0 and 1); backward() is the last of a step, and sends
  // them off as they become ready. Parameters that the loss does not depend on get zero.
  void accumulate(const at::Tensor& loss);
  void backward(const at::Tensor& loss);
  // After backward(): scales all gradients so that their norm over the whole model is at most `largest`; returns the
  // norm before. As torch::nn::utils::clip_grad_norm_.
  double clip_grad_norm(double largest);
  // Waits for the gradients, updates, and clears them. Afterwards all ranks have the new parameters, and where sync
  // keeps these alike at this step, rank 0's buffers (running statistics of a batch norm).
  void step(torch::optim::Optimizer& optimizer);
  // The same with any update of parameters() from their .grad.
  void step(const std::function<void()>& update);
  // With sync.replication "parameter-server", where the servers hold the optimizer: sends the gradients, and fetches
  // parameters as sync.consistency and sync.pull_every say.
  void step(double lr);

  // Calls `body` with all parameters whole and the newest, and with the buffers of rank 0, the same on all ranks: to
  // evaluate, save or print them; where ranks train apart (local SGD, inside a period) the mean of all ranks', and each
  // has its own again afterwards. Not to be written in place; under sync.zero = 3 torch::load loads here. Collective.
  void with_whole_parameters(const std::function<void()>& body) override;
  // Returns the bytes of gradients and parameters that this rank has sent for training since construction, as the ring
  // algorithm counts them.
  int64_t bytes_sent() const;

 private:
  modules::ModelPart part() override;
  void go_on_after(int64_t steps) override;

  class State;
  std::unique_ptr<State> state_;
};

double mean(double value, Communicator& world);  // of a metric over the ranks; collective

// Makes the state of all ranks' optimizers that of rank 0: after loading a checkpoint there. Not with sync.zero, where
// each rank's is its own.
void broadcast_state(torch::optim::Optimizer& optimizer, Communicator& world);

}  // namespace braid
