// A pipeline's queries about a layer's modules. Other files here need not include torch/nn.
#pragma once

#include <string>
#include <vector>

#include "braid/mesh/placement.h"
#include "braid/module/layer_list.h"

namespace braid::modules {

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
