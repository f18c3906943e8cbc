// Muon: the matrices inside of a model move along their momentum made orthogonal, all other parameters (embeddings,
// head, norms, biases) by AdamW.
//
// Sources: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), with Nesterov's step; the
// size of a step, 0.2 sqrt(max(rows, columns)), and its decoupled decay: Liu et al., "Muon is Scalable for LLM
// Training" (2025), section 2.2, so that one learning rate suits matrices and the rest.
#pragma once

#include <vector>

#include "braid/optim/element_pass.h"
#include "braid/optim/optimizer.h"

namespace braid::optim {

// The nearest matrix to `matrix` with orthonormal rows or columns, about: five Newton-Schulz steps of degree five bring
// singular values between 0.7 and 1.2, but for those below a thousandth of its norm. In the type of `matrix`; not
// bitwise the same for every number of threads.
at::Tensor orthogonalized(const at::Tensor& matrix);

class Muon final : public Optimizer {
 public:
  // A matrix of which ranks hold parts is brought together on each of them, which then makes the same product: whatever
  // the layout, the update is that of one rank.
  Muon(const OptimizerSpec& spec, param::ParamStore& store, MatrixGroups groups);

  static int num_states(param::LinearMap linear) { return linear == param::LinearMap::Yes ? 1 : 2; }

 private:
  // This rank's shard of a matrix: elements `begin` to `end`, without padding of the flat buffers.
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
  const MatrixGroups groups_;
  const ParameterGroups rates_;
  const ElementPass rest_;
  const std::vector<StateStretch> stretches_;  // of the matrices
};

}  // namespace braid::optim
