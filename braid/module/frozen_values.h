// The values of parameters that are not trained, equal on all ranks.
#pragma once

#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"

namespace braid::modules {

class FrozenValues {
 public:
  // REQUIRES: the frozen parameters of `layers` are equal on all ranks.
  explicit FrozenValues(const LayerList& layers);

  // Copies rank 0's values to all ranks if they were replaced on all, by torch::load or set_data(). Collective over
  // `ranks` on a rank that finds a change. Throws ConfigError if not all ranks have the same changes.
  void follow(Communicator& ranks);

 private:
  struct Value {
    std::string name;
    at::Tensor parameter;
    at::Tensor memory;  // the parameter's values when they were last equal
  };
  std::vector<Value> values_;
};

}  // namespace braid::modules
