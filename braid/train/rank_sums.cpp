// One buffer of doubles, reduced in place.
#include "braid/train/rank_sums.h"

#include <ATen/ops/tensor.h>

namespace braid::train {

RankSums::Part RankSums::add(const std::vector<double>& own) {
  const Part part{own_.size(), own.size()};
  own_.insert(own_.end(), own.begin(), own.end());
  return part;
}

void RankSums::start(Communicator& ranks) {
  sums_ = at::tensor(own_, at::kDouble);
  work_ = ranks.all_reduce(sums_, ReduceOp::Sum);
}

std::span<const double> RankSums::of(Part part) const {
  return std::span(sums_.const_data_ptr<double>(), own_.size()).subspan(part.begin, part.count);
}

}  // namespace braid::train
