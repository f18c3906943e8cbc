// Finds replaced values by their memory. Values are not compared.
#include "braid/module/frozen_values.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/comm/op_name.h"
#include "braid/module/layer_facts.h"

namespace braid::modules {

FrozenValues::FrozenValues(const LayerList& layers) {
  std::set<const void*> seen;
  for (int l = 0; l < layers.size(); ++l) {
    int number = 0;
    for (const at::Tensor& tensor : parameters(layers[l])) {
      const std::string name = cat(layers[l].name, ".", number++);
      if (tensor.requires_grad() || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
      values_.push_back({name, tensor, tensor.detach()});
    }
  }
}

void FrozenValues::follow(Communicator& ranks) {
  std::vector<int64_t> replaced;
  for (const Value& each : values_) replaced.push_back(each.parameter.is_alias_of(each.memory) ? 0 : 1);
  if (std::ranges::count(replaced, 1) == 0) return;
  const std::vector<int64_t> counts = comm::agree(ranks, "changed frozen parameters", replaced, ReduceOp::Sum);
  std::vector<Problem> problems;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (counts[i] == 0 || counts[i] == ranks.size()) continue;
    problems.push_back({values_[i].name, cat("changed on ", counts[i], " of ", ranks.size(), " ranks"),
                        "must be loaded on all of them", ""});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  const c10::AutoGradMode no_grad(false);
  const comm::CallName name("frozen parameters");
  for (size_t i = 0; i < values_.size(); ++i) {
    if (replaced[i] == 0) continue;
    values_[i].memory = values_[i].parameter.detach();
    const at::Tensor whole = values_[i].memory.contiguous();
    ranks.broadcast(whole, 0).wait_host();
    if (!values_[i].memory.is_contiguous()) values_[i].memory.copy_(whole);
  }
}

}  // namespace braid::modules
