// The auxiliary losses and counts of one rank's blocks in a step (nn/auxiliary.h), kept until ranks exchange them.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/nn/auxiliary.h"
#include "braid/param/param_spec.h"

namespace braid::train {

// By name, of the whole model: zeros where another rank has the block.
struct AuxiliaryNumbers {
  // By microbatch, so that the order of their sum is that of the loss.
  std::map<std::string, std::vector<double>> losses;
  // Added up over microbatches: whole numbers, exact in any order.
  std::map<std::string, std::vector<double>> counts;
};

class StepAuxiliaries {
 public:
  explicit StepAuxiliaries(param::AuxiliarySpec all) : all_(std::move(all)) {}

  // Forgets what there is. `like`: float64, where the model is.
  void begin_step(int num_microbatches, const at::TensorOptions& like);
  // Adds the contributions of a stage's blocks for `micro`. Does not wait for the device. check() fails on a name that
  // no BlockSpec lists.
  void add(int micro, const nn::Auxiliaries& handed_in);
  // Waits for the device.
  AuxiliaryNumbers numbers() const;

 private:
  using Views = std::map<std::string, at::Tensor>;  // of flat_, without gaps

  param::AuxiliarySpec all_;
  at::Tensor flat_;
  Views losses_, counts_;
};

}  // namespace braid::train
