// Saving and loading of DataParallel and ModulePipeline. Each loads the other's checkpoints if their layers have the
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

// A model that can be saved and loaded. All methods are collective over the ranks of the model, and are called between
// steps. If a file or checkpoint does not fit the model, all ranks throw the same error, which names every difference,
// before anything changes. Tensors are named by the layer and torch's name in it ("fc1.weight"); a tied tensor has the
// first of its names.
class SavableModel {
 public:
  // Save and load a checkpoint (docs/checkpoint_format.md): parameters, buffers, the number of steps, and the kind and
  // states of `optimizer`. The optimizer is torch's Adam, AdamW or SGD over parameters(). A checkpoint loads, bit for
  // bit, on any number of ranks, with any cut of the model and any sharding, whichever saved it. On the same ranks,
  // training resumes with the bits of an uninterrupted run. Masks of KeyedDropout continue with the step number.
  // Gradients and the optimizer's learning rates are not saved; the program sets the rates. Throws ConfigError unless
  // sync is all-reduce without residuals or ZeRO, and if the optimizer has none of parameters(); throws as
  // save_checkpoint() and load_checkpoint() do. Under sync.zero, load() also throws ConfigError if parameters of one
  // shard unit have different step counts.
  void save(const std::string& directory, torch::optim::Optimizer& optimizer);
  void load(const std::string& directory, torch::optim::Optimizer& optimizer);
  // Writes the newest parameters, whole, and the buffers as one safetensors file that plain torch reads
  // (safetensors.torch.load_file). If replicas train independently, writes the mean of their parameters, and the first
  // replica's buffers. World rank 0 writes. Throws IoError, and then leaves what was at `path` before.
  void export_weights(const std::string& path);
  // Reads such a file on every rank. Throws ConfigError unless the file has exactly the model's parameters and buffers,
  // in their shapes and types. Throws IoError.
  void import_weights(const std::string& path);

 protected:
  SavableModel() = default;
  ~SavableModel() = default;

 private:
  // Returns this rank's part, after taking over values that were loaded into the modules. Throws ConfigError naming
  // changes that cannot be followed, or if the ranks to save with are unknown.
  virtual ModelPart part() = 0;
  // Called after values were written into the parameters. Sets the number of steps done to `steps`.
  virtual void go_on_after(int64_t steps) = 0;
  // Collective. Calls `body` while parameters are whole, and those of one model.
  virtual void with_whole_parameters(const std::function<void()>& body) = 0;
};

}  // namespace braid::modules
