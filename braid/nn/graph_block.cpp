// Runs calls over a frame.
#include "braid/nn/graph_block.h"

#include <set>

namespace braid::nn {

GraphBlock::GraphBlock(std::vector<Call> calls, const Values& values)
    : calls_(std::move(calls)), done_(calls_.size()), values_(values) {
  std::set<int> used{values.output};
  for (size_t call = calls_.size(); call-- > 0;) {
    for (const int value : calls_[call].uses) {
      if (used.insert(value).second) done_[call].push_back(value);
    }
  }
}

at::Tensor GraphBlock::forward(const at::Tensor& x_btc, const Microbatch& microbatch) {
  Frame frame(values_.num_values, at::Tensor());
  frame[values_.input] = x_btc;
  for (size_t call = 0; call < calls_.size(); ++call) {
    const comm::CallName name(calls_[call].op);
    calls_[call].run(frame, microbatch);
    for (const int value : done_[call]) frame[value] = at::Tensor();
  }
  return std::move(frame[values_.output].value);
}

}  // namespace braid::nn
