// Finds out what travels between stages by sending one microbatch forward through the pipe, before there are buffers.
#pragma once

#include <map>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_stage.h"
#include "braid/schedule/schedule.h"

namespace braid::modules {

struct TensorSpec {
  std::vector<int64_t> sizes;
  at::ScalarType type = at::kFloat;
  bool requires_grad = false;  // then its gradient travels back

  at::Tensor empty() const;
  bool operator==(const TensorSpec&) const = default;
};
std::string text(const std::vector<TensorSpec>& specs);

std::vector<TensorSpec> specs_of(const Tensors& tensors);

struct StageShapes {
  std::vector<TensorSpec> inputs, outputs;
  std::vector<bool> written = {};  // by input: a layer writes it in place
  bool contributes = false;        // a layer contributes an auxiliary loss
};

// Collective over `pipe`. `stages` are this rank's by number, `inputs` the first stage's (read on its rank only; they
// require no gradient). Modules run in the mode they and the thread (c10::GradMode) are in; buffers that they change
// are put back.
std::map<int, StageShapes> trace_shapes(const std::map<int, LayerStage>& stages, const Schedule& schedule,
                                        Communicator& pipe, const Tensors& inputs);

}  // namespace braid::modules
