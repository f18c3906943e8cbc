// The states of torch's Adam, AdamW or SGD on disk, for any torch modules. SGD without momentum has no states: its
// OptimizerOnDisk is for models with parameters or gradients on disk (model_memory.h).
//
//   torch::optim::AdamW optimizer(model.parameters(), 1e-3);
//   OptimizerOnDisk on_disk(optimizer, {.folders = {"/scratch"}});
//   ...
//   model.step(on_disk);                       // DataParallel, in place of model.step(optimizer)
//   pipeline.update(on_disk);                  // ModulePipeline; plain modules call on_disk.step()
//   model.save("checkpoint", optimizer);
//
// One OptimizerOnDisk makes the whole step of a model: afterwards the gradients are cleared.
//
// step() lets the optimizer update one part of the parameters after another, while the disk reads the states of the
// next chunk and writes those of the chunk before (ZeRO-Infinity, Rajbhandari et al. 2021, section 5.2). The
// optimizer's groups, learning rates and step counts are its own, as without a disk.
//
// Between steps optimizer.state() has tensors as before. They are mapped files, whose pages are the system's page cache
// and not memory of the process: read them, do not write them. Only step() compares checksums. States that the program
// replaces, by torch::load() or a load() after the first step, are in memory until the next step() moves them. A load()
// before the first step writes those of Adam and AdamW to the disk at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace braid {

namespace param {
class DiskTensors;
}

class OptimizerOnDisk {
 public:
  struct Options {
    std::vector<std::string> folders;        // a file without a name in each
    int64_t chunk_bytes = int64_t{4} << 20;  // of each state, moved at a time; three of them are in memory
  };
  // Opens the space for the states of all parameters of `optimizer`, which outlives this. Throws ConfigError with all
  // problems: an optimizer of another class, parameters that are not on the CPU, have gaps between their elements, are
  // of several types or are there twice, and what is wrong with the folders.
  OptimizerOnDisk(torch::optim::Optimizer& optimizer, const Options& options);
  ~OptimizerOnDisk();
  OptimizerOnDisk(const OptimizerOnDisk&) = delete;

  // Makes the optimizer's step. If gradients have the strides of their parameters, the bits are those of
  // optimizer.step() on one thread: on several, torch's own bits depend on how it divides a tensor among them. Throws
  // ConfigError if the optimizer's parameters, or which states it keeps, have changed since construction; then nothing
  // was done. If the disk or the optimizer throws, some parameters are updated and some are not, the optimizer has no
  // states any more, and each later step throws RunError.
  void step();

  int64_t bytes_written() const;
  int64_t bytes_read() const;

 private:
  friend class DataParallel;
  friend class ModulePipeline;
  // A model's parameters, its own disk, and the factors by which its gradients there are multiplied, one after another,
  // when they are read.
  struct Model {
    std::vector<at::Tensor> parameters = {};
    param::DiskTensors* disk = nullptr;  // null: all is in memory
    std::vector<double> gradient_factors = {};
  };
  // Makes the step of a model that may have parameters and gradients on disk (model_memory.h).
  void step_of(const Model& model);

  class State;
  std::unique_ptr<State> state_;
};

}  // namespace braid
