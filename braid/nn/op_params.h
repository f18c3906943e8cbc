// The parameters of the ops of one block, as this rank stores them.
#pragma once

#include <cstddef>

#include "braid/model/graph.h"
#include "braid/nn/weight_grads.h"
#include "braid/param/param_store.h"

namespace braid::nn {

class OpParams {
 public:
  // `number` is that of the block in the model's list. `graph` and `store` outlive this.
  OpParams(const model::ModelGraph& graph, size_t number, param::ParamStore& store)
      : graph_(graph), number_(number), store_(store) {}

  const param::Parameter& operator[](const model::Param& param) const {
    return store_[model::param_name(graph_, number_, param)];
  }
  // Returns the use of a parameter by an op of the block. In a tied parameter, the head's use is the last.
  ParamUse use(const model::Param& of_op) const {
    const param::Parameter& param = (*this)[of_op];
    return number_ + 1 == graph_.blocks.size() ? last_use(param) : ParamUse{&param, 0};
  }

 private:
  const model::ModelGraph& graph_;
  const size_t number_;
  param::ParamStore& store_;
};

}  // namespace braid::nn
