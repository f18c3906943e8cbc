// Determines which tensors are sent between stages, by running one microbatch forward through the pipe before there are
// buffers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_stage.h"
#include "braid/module/minibatch_split.h"
#include "braid/schedule/schedule.h"

namespace braid::modules {

struct TensorSpec {
  std::vector<int64_t> sizes;
  at::ScalarType type = at::kFloat;
  bool requires_grad = false;  // its gradient is sent back

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

// Returns the shapes of this rank's stages, by number. Collective over `pipe`. `stages` are this rank's stages by
// number. `inputs` are those of the first stage, read on its rank only; they require no gradient. The mode of the
// modules and of the thread (c10::GradMode) stays as it is. Buffers that modules change are restored.
std::map<int, StageShapes> trace_shapes(const std::map<int, LayerStage>& stages, const Schedule& schedule,
                                        Communicator& pipe, const Tensors& inputs);

// The facts that all ranks of a pipe need before a step: the rows of its minibatch, and the shapes of tensors between
// stages. Shapes are traced once for each kind of input, and then looked up.
class ShapeCache {
 public:
  // All arguments outlive this.
  ShapeCache(const std::map<int, LayerStage>& stages, const Schedule& schedule, Communicator& pipe);

  struct MinibatchShapes {
    MinibatchSplit split;
    const std::vector<std::map<int, StageShapes>>* shapes;  // by kind of microbatch; valid until the next find()
  };
  // Collective. `inputs` are read on the rank of the first stage, which throws ConfigError if they cannot be split.
  // Training has as many microbatches as the schedule. Evaluation has as many, but at most one per row.
  MinibatchShapes find(const Tensors& inputs, ForwardPurpose purpose);
  void forget() { numbers_.clear(); }
  // Called by find() on every rank with the number of kinds of microbatches to trace, often 0, and what traces them.
  // REQUIRES: set before find().
  std::function<void(int num_traces, const std::function<void()>& trace)> run_traces;

 private:
  void require_rows(const Tensors& inputs, ForwardPurpose purpose) const;
  std::vector<std::map<int, StageShapes>> trace(const Tensors& inputs, const MinibatchSplit& split) const;

  const std::map<int, LayerStage>& stages_;
  const Schedule& schedule_;
  Communicator& pipe_;
  std::map<std::string, int64_t> numbers_;  // on the rank of the first stage: numbers of kinds of inputs seen
  int64_t next_number_ = 0;
  std::map<int64_t, std::vector<std::map<int, StageShapes>>> shapes_by_kind_;
};

}  // namespace braid::modules
