// Pipeline-parallel training of any torch modules. The model is cut into stages and run by any synchronous schedule,
// with the gradients that one rank would compute.
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
// Thread ranks of a pipeline share one list, made before they start; each rank uses the modules of its own stages. Each
// data rank has a list of its own.
//
// Guarantee: for modules that treat samples one by one, loss, gradients and updates are those of the whole minibatch on
// one rank, to rounding. Layers may work in place, also on the inputs of their stage. Modules that mix samples (batch
// norm) see one microbatch at a time; see deferred_batch_norm.h. Modules have no split between input and weight
// gradients (layer_executor.h). Buffers that modules update from the rows they see become data rank 0's on all data
// ranks, after every step that leaves the ranks' weights equal. savable_model.h describes saving and loading, between
// steps. For models that do not fit in memory see model_memory.h (parameters and gradients on disk),
// optimizer_on_disk.h, Options::activations, and layer_options.h (recomputed activations).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/activations_on_disk.h"
#include "braid/module/layer_list.h"
#include "braid/module/loss_function.h"
#include "braid/module/model_memory.h"
#include "braid/module/optimizer_on_disk.h"
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
    Schedule schedule;  // missing sends, receives and reductions are added
    LossFunction loss;  // may be omitted if nothing is trained
    LossKind loss_kind = LossKind::Mean;
    std::vector<int> balance = {};  // layers per stage; empty: as even as possible
    Communicator* data = nullptr;   // ranks that hold the same stages; null: this rank alone, no sync
    SyncSpec sync = {};             // all-reduce with its options, sync.zero, local-sgd or diloco
    ModelMemory memory = {};        // where parameters and gradients are between their uses
    int64_t first_step = 0;         // number of the first step, if training resumes
    // Keeps what autograd saves on disk, and outlives this; null: in memory. What passes from stage to stage stays
    // there.
    const ActivationsOnDisk* activations = nullptr;
    Communicator* world = nullptr;  // all ranks of all replicas, for save() and load(); null: those of `pipe`
  };

  // Collective over `pipe` and `data`. Both, and `world`, outlive this. The list is copied, its modules are not.
  // Parameters and buffers of all data ranks become those of data rank 0. Throws ConfigError with all problems of
  // layers, balance, schedule and sync, the same on all ranks, before any of them starts work. With `data` the trained
  // parameters of a rank are float32 or float64, on the CPU, and are moved into one buffer, as are their gradients.
  ModulePipeline(LayerList layers, Communicator& pipe, Options options);
  ~ModulePipeline();

  // Trains on one minibatch. Collective. The minibatch is split along dimension 0 into the schedule's microbatches, as
  // evenly as possible. All tensors have the same number of rows, at least one per microbatch. Microbatches are copies,
  // so layers that work in place do not write the caller's tensors. Adds the minibatch's gradients to `.grad` of the
  // parameters of this rank's stages; gradients on disk are those of the last minibatch. `inputs` are read on the rank
  // of the first stage, and `targets` on that of the last; other ranks may pass {}. Returns the loss of the minibatch
  // of all data ranks on the rank of the last stage, and nothing elsewhere.
  //
  // The first call with inputs of new shapes runs an extra forward of a microbatch, to determine the shapes. If
  // values were loaded into the modules of all data ranks (torch::load), data rank 0's are copied to all. Throws
  // ConfigError naming changes to parameters that data ranks cannot follow: a parameter that was released without
  // retrace(), that has another type, or that was frozen where sync is not all-reduce with sync.zero = 0. After a step
  // that threw while gradients were sharded (sync.zero from 2 on) or on disk, step() throws RunError; save() and load()
  // do not.
  std::optional<double> step(const Tensors& inputs, const Tensors& targets);

  // Returns the last step's auxiliary losses (auxiliary_loss.h) of this rank's stages, weighted, averaged over the
  // minibatches of all data ranks like the loss. step() returns the loss without them.
  double auxiliary_loss() const;

  // Collective. Runs the modules in evaluation mode. Returns the outputs on the rank of the last stage, and {}
  // elsewhere. With sync.zero = 3, also collective over `data`, whose ranks then have as many microbatches: the
  // schedule's, or their rows if these are fewer. The same holds with sync.zero and parameters on disk.
  Tensors forward(const Tensors& inputs);

  // Collective over `data`. Makes the update that follows step(): updates parameters() from their .grad, and gives the
  // new parameters to all data ranks. sync.zero, local-sgd, diloco, and parameters or gradients on disk need it after
  // every step(); those on disk need an OptimizerOnDisk, without which ConfigError is thrown. Otherwise an optimizer
  // may be called without it. Throws ConfigError, and does nothing, if `optimizer` has none of parameters().
  void update(OptimizerOnDisk& optimizer);
  void update(torch::optim::Optimizer& optimizer);
  void update(const std::function<void()>& write);

  // Collective over `data`. Calls `body` while the parameters of this rank's stages are whole and the newest, as
  // DataParallel::with_whole_parameters() does.
  void with_whole_parameters(const std::function<void()>& body) override;

  // Returns the tensors that an optimizer on this rank updates: the parameters of its stages, each once; under
  // sync.zero, or if some are on disk, the flat ranges that it owns.
  const Tensors& parameters() const;
  // Returns the bytes that this rank has sent to data ranks since construction, as the ring algorithm counts them.
  int64_t bytes_sent() const;
  // Returns when each action of the last step ran on this rank, in seconds of now_seconds().
  const std::vector<schedule::Span>& spans() const;
  // Forgets the traced shapes, and which tensors need gradients. Call it on every rank after a parameter was frozen or
  // released, or modules were changed. If a parameter was released, compression residuals start anew.
  void retrace();

 private:
  modules::ModelPart part() override;
  void go_on_after(int64_t steps) override;

  class State;
  std::unique_ptr<State> state_;
};

}  // namespace braid
