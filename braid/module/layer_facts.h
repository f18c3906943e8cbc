// A pipeline's queries about a layer's modules. Other files here need not include torch/nn.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/mesh/placement.h"
#include "braid/module/layer_list.h"

namespace braid::modules {

// Notices operations of the calling thread that draw from the process-wide random generator of the CPU.
class RandomDrawWatch {
 public:
  RandomDrawWatch();
  ~RandomDrawWatch();
  RandomDrawWatch(const RandomDrawWatch&) = delete;
  RandomDrawWatch& operator=(const RandomDrawWatch&) = delete;

  // "aten::bernoulli_": what could have drawn since construction, each once, if the generator has moved; else empty. So
  // an operation with a generator of its own is not among them, unless another thread drew meanwhile. Those within the
  // life of an inner watch are the inner one's.
  std::vector<std::string> operations() const;

 private:
  struct Observer;

  at::Tensor state_;  // of the generator, at construction
  std::vector<std::string> operations_;
  RandomDrawWatch* outer_;
  uint64_t callback_;
};

class MicrobatchListener;

inline mesh::Index shape_of(const at::Tensor& tensor) { return {tensor.sizes().begin(), tensor.sizes().end()}; }

Tensors parameters(const Layer& layer);  // each once
Tensors buffers(const Layer& layer);
Tensors buffers(const LayerList& layers);

// The module and every one within, parents first; empty for a function.
std::vector<const torch::nn::Module*> modules(const Layer& layer);
std::vector<MicrobatchListener*> listeners(const Layer& layer);

// The modules that draw from the process-wide random generator when they train, as "torch::nn::Dropout(p=0.5)": the
// dropouts, RReLU, and those of attention and recurrent layers. One whose probability is 0 draws nothing.
std::vector<std::string> drawing_modules(const Layer& layer);

// Puts the layer in evaluation mode, and back into what each of its modules was in.
class EvaluationMode {
 public:
  explicit EvaluationMode(const Layer& layer);
  ~EvaluationMode();
  EvaluationMode(EvaluationMode&&) = default;

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<char> training_;
};

}  // namespace braid::modules
