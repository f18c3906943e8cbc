// The rates of each parameter: norms and biases have no weight decay, and groups of optimizer.groups have their own
// rates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/param/param_store.h"
#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

struct GroupRates {
  double lr_scale = 1;  // factor on the learning rate of the step
  double weight_decay = 0;
  bool operator==(const GroupRates&) const = default;
};

// Returns the rates of the parameter called `name`.
GroupRates rates_of(const std::string& name, model::WeightDecay decay, const OptimizerSpec& spec);

class ParameterGroups {
 public:
  ParameterGroups(const OptimizerSpec& spec, const param::ParamStore& store);

  const std::vector<GroupRates>& rates() const { return rates_; }
  const GroupRates& of(const param::Parameter& param) const { return rates_[index_of_param_[param.index]]; }
  // Returns the index in rates() of each block of ParamStore::kAlign elements of the flat buffers.
  const std::vector<uint8_t>& of_blocks() const { return of_blocks_; }

 private:
  std::vector<GroupRates> rates_;
  std::vector<int> index_of_param_;
  std::vector<uint8_t> of_blocks_;
};

}  // namespace braid::optim
