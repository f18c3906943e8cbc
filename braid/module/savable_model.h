// Saving and resuming of DataParallel and ModulePipeline. Each loads the other's checkpoints if their layers have the
// same names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace torch::optim {
class Optimizer;
}

namespace braid::modules {

struct ModelPart;

// All of it is collective over the ranks of the model, between steps. A file or a checkpoint that does not fit is
// refused before anything changes, by the same error on all ranks, which names every difference. Tensors have torch's
// names behind the layer's ("fc1.weight"), a tied one the first of its names.
class SavableModel {
 public:
  // Parameters, buffers, the states of `optimizer` (torch's Adam, AdamW or SGD over parameters()), its kind and the
  // number of steps, as a checkpoint (docs/checkpoint_format.md), and back. Any ranks load what any other have saved,
  // bit for bit, however many they are, wherever the model is cut and whatever is sharded; on the same ranks training
  // goes on with the bits of one that was not interrupted. Masks of KeyedDropout go on with the step. Gradients are not
  // saved; rates of the optimizer are the program's. Throws ConfigError where sync is neither sums nor ZeRO, and as
  // save_checkpoint() and load_checkpoint(); under sync.zero also where parameters that are sharded as one have seen
  // different numbers of steps.
  void save(const std::string& directory, torch::optim::Optimizer& optimizer);
  void load(const std::string& directory, torch::optim::Optimizer& optimizer);
  // Parameters and buffers, whole and the newest, as one safetensors file that plain torch reads
  // (safetensors.torch.load_file); where replicas train apart, the mean of their parameters and the first one's
  // buffers. World rank 0 writes. Throws IoError with what was at `path` before in its place.
  void export_weights(const std::string& path);
  // The other way: every rank reads the file, which has each parameter and buffer in its shape and type and nothing
  // else. Throws ConfigError and IoError.
  void import_weights(const std::string& path);

 protected:
  SavableModel() = default;
  ~SavableModel() = default;

 private:
  // Takes over what was loaded into the modules before. Throws ConfigError naming what cannot be followed, or that
  // there are no ranks to save with.
  virtual ModelPart part() = 0;
  // `steps` have been made, and values were written into the parameters.
  virtual void go_on_after(int64_t steps) = 0;
  // Calls `body` while parameters are whole, and those of one model. Collective.
  virtual void with_whole_parameters(const std::function<void()>& body) = 0;
};

}  // namespace braid::modules
