// Training of any torch modules as a pipeline: cut into stages, run by any synchronous schedule, with the gradients
// that one rank would compute.
//
//   LayerList layers;
//   layers.add("fc1", torch::nn::Linear(8, 16)).add("act", torch::nn::Tanh()).add("fc2", torch::nn::Linear(16, 2));
//   run_ranks(2, [&](Communicator& pipe) {
//     ModulePipeline pipeline(layers, pipe, {.schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 4}),
//                                            .loss = torch::nn::CrossEntropyLoss()});
//     torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
//     optimizer.zero_grad();
//     const auto loss = pipeline.step({images}, {classes});  // a number on the rank of the last stage
//     optimizer.step();
//   });
//
// Ranks that are threads share one list, made before they start; each uses the modules of its own stages. A data rank
// has a list of its own.
//
// Promise: loss, gradients and so updates are those of the whole minibatch on one rank, to rounding, for modules that
// treat samples one by one. Layers may work in place, also on what their stage receives. Those that mix them (batch
// norm) see a microbatch; see deferred_batch_norm.h. Modules have no split between input and weight gradients
// (layer_executor.h). What modules note of the rows they see (buffers) is data rank 0's on all data ranks, after every
// step that leaves their weights alike. Saving and loading, between steps: savable_model.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/module/loss_function.h"
#include "braid/module/savable_model.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"
#include "braid/spec/sync_spec.h"

namespace torch::optim {
class Optimizer;
}

namespace braid {

// The loss of a minibatch: the mean of its samples' losses, or their sum. The mean of a counted loss (loss_function.h)
// is over the counted elements of all data ranks' minibatches.
enum class LossKind { Mean, Sum };

class ModulePipeline : public modules::SavableModel {
 public:
  struct Options {
    Schedule schedule;  // its sends, receives and reductions are added when missing
    LossFunction loss;  // may be left out where nothing is trained
    LossKind loss_kind = LossKind::Mean;
    std::vector<int> balance = {};  // layers per stage; empty: as even as can be
    Communicator* data = nullptr;   // the ranks that hold the same stages; null: only this one, and no sync
    SyncSpec sync = {};             // how these are kept in step: sums as asked for, sync.zero = 1, local-sgd, diloco
    int64_t first_step = 0;         // the number of the first step, when a training goes on
    Communicator* world = nullptr;  // all ranks of all replicas, to save and load with; null: those of `pipe`
  };

  // Collective over `pipe` and `data`, which outlive this, as does `world`; the list is copied, its modules are not.
  // Data rank 0's parameters and buffers become those of all. Throws ConfigError with everything that is wrong with
  // layers, balance, schedule and sync, the same on all ranks, before any of them starts work. With `data` the trained
  // parameters of a rank are float32 or float64, on the CPU, and come to lie in one buffer, as their gradients do.
  ModulePipeline(LayerList layers, Communicator& pipe, Options options);
  ~ModulePipeline();

  // One minibatch, split along dimension 0 into the schedule's microbatches (as even as can be; all tensors have the
  // same number of rows, at least one per microbatch), which are copies: what works in place writes none of the
  // caller's. Adds its gradients to `.grad` of the parameters of this rank's stages. Collective; `inputs` are read on
  // the rank of the first stage, `targets` on that of the last, others may give {}. Returns the loss of the minibatch
  // of all data ranks on the rank of the last stage, elsewhere nothing. The first call with inputs of new shapes sends
  // a microbatch forward once more, to find out the shapes. Values that were loaded into the modules of all data ranks
  // (torch::load) are taken over, as those of data rank 0. Throws ConfigError naming what was done to parameters that
  // data ranks cannot follow: released without retrace(), another type, frozen where sums are not plain or compressed.
  std::optional<double> step(const Tensors& inputs, const Tensors& targets);

  // Returns the last step's auxiliary losses (auxiliary_loss.h) of this rank's stages, weighted, averaged over the
  // minibatches of all data ranks like the loss. step() returns the loss without them.
  double auxiliary_loss() const;

  // The outputs, on the rank of the last stage; elsewhere {}. Modules are in evaluation mode meanwhile. Collective.
  Tensors forward(const Tensors& inputs);

  // The update that follows step(): parameters() from their .grad, and what the data ranks then do to have the new
  // ones. An optimizer may be called without it where sums keep them in step; sync.zero, local-sgd and diloco need it
  // after every step(). Collective over `data`.
  void update(torch::optim::Optimizer& optimizer);
  void update(const std::function<void()>& write);

  // Returns the tensors that an optimizer on this rank updates: the parameters of its stages, each once; under
  // sync.zero the flat ranges that it owns.
  const Tensors& parameters() const;
  // To data ranks since construction, by the ring algorithm's count, on this rank.
  int64_t bytes_sent() const;
  // When each action of the last step ran on this rank, in seconds of now_seconds().
  const std::vector<schedule::Span>& spans() const;
  // Forgets the shapes found out, and which tensors need gradients: for after a parameter was frozen or released, or
  // modules changed. On every rank. What compression carries over begins anew when a parameter was released.
  void retrace();

 private:
  modules::ModelPart part() override;
  void go_on_after(int64_t steps) override;
  void with_whole_parameters(const std::function<void()>& body) override;

  class State;
  std::unique_ptr<State> state_;
};

}  // namespace braid
