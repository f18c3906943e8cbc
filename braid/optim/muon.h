// Muon: updates the matrices inside a model by their orthogonalised momentum, and all other parameters (embeddings,
// head, norms, biases) by AdamW.
//
// Sources: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), with Nesterov's step. The
// step size, 0.2 sqrt(max(rows, columns)), and the decoupled decay are from Liu et al., "Muon is Scalable for LLM
// Training" (2025), section 2.2, so that one learning rate suits matrices and other parameters.
#pragma once

#include <vector>

#include "braid/optim/element_pass.h"
#include "braid/optim/optimizer.h"

namespace braid::optim {

// Returns approximately the nearest matrix to `matrix` with orthonormal rows or columns. Five Newton-Schulz steps of
// degree five bring singular values between 0.7 and 1.2, except those below a thousandth of its norm. The arithmetic is
// in the type of `matrix`. The bits may depend on the number of threads.
at::Tensor orthogonalized(const at::Tensor& matrix);

class Muon final : public Optimizer {
 public:
  // If ranks hold parts of a matrix, each of them gathers the whole matrix and computes the same product. So the update
  // does not depend on the layout.
  // `shards` and `tensor` as in make_optimizer().
  Muon(const OptimizerSpec& spec, param::ParamStore& store, Communicator* shards, Communicator* tensor);

  static int num_states(model::LinearMap linear) { return linear == model::LinearMap::Yes ? 1 : 2; }

 private:
  // A part of this rank's shard of a matrix: elements `begin` to `end` of the local matrix, without the padding of the
  // flat buffers.
  struct OwnPart {
    int64_t begin, end;
    at::Tensor master, data, grad, momentum;  // 1-D
  };
  std::vector<OptimizerState> zero_states() const override;
  void update(const OptimizerStep& step) override;
  void update_matrix(const param::Parameter& param, const OptimizerStep& step);
  std::vector<OwnPart> own_parts(const param::Parameter& param);
  at::Tensor whole(const param::Parameter& param, const std::vector<OwnPart>& parts,
                   const std::vector<at::Tensor>& values);

  const double momentum_;
  Communicator* const shards_;
  Communicator* const tensor_;
  const ParameterGroups rates_;
  ElementPass rest_;
  const std::vector<StateStretch> stretches_;  // the stretches of the matrices
};

}  // namespace braid::optim
