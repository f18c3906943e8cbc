// Queries about a layer's modules, so that other files need not include torch/nn.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/mesh/placement.h"
#include "braid/module/layer_list.h"

namespace braid::modules {

// A scope that detects operations of the calling thread that draw from the process-wide random generator of the CPU.
class RandomDrawWatch {
 public:
  RandomDrawWatch();
  ~RandomDrawWatch();
  RandomDrawWatch(const RandomDrawWatch&) = delete;
  RandomDrawWatch& operator=(const RandomDrawWatch&) = delete;

  // Returns the operations since construction that may have drawn, each once, as "aten::bernoulli_". Returns nothing if
  // the generator's state is unchanged. So an operation with a generator of its own is not returned, unless another
  // thread drew meanwhile. Operations during the lifetime of an inner watch belong to the inner one.
  std::vector<std::string> operations() const;
  const at::Tensor& state_before() const { return state_; }  // the generator's state at construction

 private:
  struct Observer;

  at::Tensor state_;  // state of the generator at construction
  std::vector<std::string> operations_;
  RandomDrawWatch* outer_;
  uint64_t callback_;
};

// The state of the process-wide random generator of the CPU.
at::Tensor generator_state();
void set_generator_state(const at::Tensor& state);

class MicrobatchListener;

inline mesh::Index shape_of(const at::Tensor& tensor) { return {tensor.sizes().begin(), tensor.sizes().end()}; }

Tensors parameters(const Layer& layer);  // without duplicates
Tensors buffers(const Layer& layer);
Tensors buffers(const LayerList& layers);

// Returns the layer's module and all modules inside it, parents first; empty for a function.
std::vector<const torch::nn::Module*> modules(const Layer& layer);
std::vector<MicrobatchListener*> listeners(const Layer& layer);

// Returns the modules that draw from the process-wide random generator in training mode, as
// "torch::nn::Dropout(p=0.5)". These are the dropouts, RReLU, and attention and recurrent layers with dropout. A module
// whose probability is 0 draws nothing.
std::vector<std::string> drawing_modules(const Layer& layer);

// The mode (training or evaluation) that each module of a layer has at construction.
class ModuleModes {
 public:
  explicit ModuleModes(const Layer& layer);
  void restore() const;

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<char> training_;
};

// A scope in which the layer is in evaluation mode. The destructor restores the mode of each of its modules.
class EvaluationMode {
 public:
  explicit EvaluationMode(const Layer& layer);
  ~EvaluationMode() { before_.restore(); }
  EvaluationMode(EvaluationMode&&) = default;

 private:
  ModuleModes before_;
};

}  // namespace braid::modules
