// Numbers of several kinds, added up over ranks by one collective: parts of one buffer, of which each keeps its place.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::train {

class RankSums {
 public:
  struct Part {
    size_t begin = 0, count = 0;
  };
  // This rank's numbers of one kind. All ranks add parts of the same sizes in the same order, before start().
  Part add(const std::vector<double>& own);
  // Returns before the others have arrived. Collective over `ranks`, which lives until finish(). start() and finish()
  // are each called once.
  void start(Communicator& ranks);
  void finish() { work_.wait_host(); }
  // After finish(): the sums over all ranks, number by number, in the Communicator's fixed order. Valid as long as
  // this object.
  std::span<const double> of(Part part) const;

 private:
  std::vector<double> own_;
  at::Tensor sums_;  // from start() on
  Work work_;
};

}  // namespace braid::train
