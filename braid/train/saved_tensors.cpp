// Names of tensors in a checkpoint.
#include "braid/train/saved_tensors.h"

namespace braid {

std::vector<PlacedTensor> saved_tensors(const ParamStore& store, const AdamW& optimizer, Replication& replication) {
  std::vector<PlacedTensor> tensors;
  for (const Parameter& param : store.params()) {
    const auto slice = [&](const at::Tensor& flat) {
      return flat.narrow(0, param.offset, param.num_elements()).view(param.placement.local_shape);
    };
    tensors.push_back({param.name, param.placement, param.master});
    tensors.push_back({"adamw.first_moment/" + param.name, param.placement, slice(optimizer.first_moment())});
    tensors.push_back({"adamw.second_moment/" + param.name, param.placement, slice(optimizer.second_moment())});
  }
  for (ReplicationState& state : replication.state()) tensors.push_back({state.name, state.placement, state.local});
  return tensors;
}

std::vector<PlacedTensor> on_host(std::vector<PlacedTensor> tensors) {
  for (PlacedTensor& placed : tensors) placed.local = placed.local.cpu();
  return tensors;
}

}  // namespace braid
