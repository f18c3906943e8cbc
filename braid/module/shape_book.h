// Facts that all ranks of a pipe need before a step: the rows of its minibatch, and the shapes of tensors between
// stages. Shapes are traced once for each kind of input (shape_trace.h) and then looked up.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/module/minibatch_split.h"
#include "braid/module/shape_trace.h"

namespace braid::modules {

class ShapeBook {
 public:
  // All outlive this.
  ShapeBook(const std::map<int, LayerStage>& stages, const Schedule& schedule, Communicator& pipe);

  struct Opening {
    MinibatchSplit split;
    const std::vector<std::map<int, StageShapes>>* shapes;  // by kind of microbatch; valid until the next open()
  };
  // Collective. `inputs` are read on the rank of the first stage; throws ConfigError there when they cannot be split.
  // A training has as many microbatches as the schedule, an evaluation at most one per row.
  Opening open(const Tensors& inputs, ForwardPurpose purpose);
  void forget() { numbers_.clear(); }

 private:
  void require_rows(const Tensors& inputs, ForwardPurpose purpose) const;
  std::vector<std::map<int, StageShapes>> trace(const Tensors& inputs, const MinibatchSplit& split) const;

  const std::map<int, LayerStage>& stages_;
  const Schedule& schedule_;
  Communicator& pipe_;
  std::map<std::string, int64_t> numbers_;  // on the rank of the first stage: of each kind of input seen
  int64_t next_number_ = 0;
  std::map<int64_t, std::vector<std::map<int, StageShapes>>> pages_;
};

}  // namespace braid::modules
