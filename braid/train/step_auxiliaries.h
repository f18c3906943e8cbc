// What the blocks of one rank hand in during a step (nn/auxiliary.h), kept until the ranks tell each other.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/nn/auxiliary.h"
#include "braid/param/param_spec.h"

namespace braid {

// By name, of the whole model: zeros where another rank has the block.
struct AuxiliaryNumbers {
  // By microbatch, so that the order of their sum is that of the loss.
  std::map<std::string, std::vector<double>> losses;
  // Added up over microbatches: whole numbers, exact in any order.
  std::map<std::string, std::vector<double>> counts;
};

class StepAuxiliaries {
 public:
  explicit StepAuxiliaries(AuxiliarySpec all) : all_(std::move(all)) {}

  // Forgets what there is. `like`: float64, where the model is.
  void begin_step(int num_microbatches, const at::TensorOptions& like);
  // What the blocks of a stage handed in for `micro`. Waits for no device. check() fails on a name that no BlockSpec
  // lists.
  void add(int micro, const Auxiliaries& handed_in);
  // Waits for the device.
  AuxiliaryNumbers numbers() const;

 private:
  using Views = std::map<std::string, at::Tensor>;  // of flat_, without gaps

  AuxiliarySpec all_;
  at::Tensor flat_;
  Views losses_, counts_;
};

}  // namespace braid
