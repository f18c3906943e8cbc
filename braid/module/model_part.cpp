// Finds names by the identity of tensors. Ranks that are threads share the modules, so values of other ranks' tensors
// are not read.
#include "braid/module/model_part.h"

#include <torch/nn/module.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/module/layer_facts.h"

namespace braid::modules {

// Without a Replication this rank cannot tell whether replicas are independent, so it keeps its own buffers in any
// case.
WholeModel::WholeModel(const LayerList& layers, const SyncedModules* synced, Communicator& replicas) {
  if (synced) synced->replication().meet();
  const bool apart = synced && synced->replication().replicas() == sync::Replicas::Apart;
  if (apart) mean_.emplace(synced->store(), replicas);
  if (apart || !synced) own_.emplace(buffers(layers));
  broadcast_buffers(layers, replicas);
  for (int layer = 0; synced && layer < layers.size(); ++layer) whole_.emplace_back(synced->replication(), layer);
}

namespace {

using Identities = std::set<const void*>;

template <class Items>
void add_named(const std::string& layer, const Items& items, Identities& seen, std::vector<NamedTensor>& found) {
  for (const auto& item : items) {
    const at::Tensor& tensor = item.value();
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second)
      found.push_back({cat(layer, ".", item.key()), tensor});
  }
}

std::vector<NamedTensor> all_parameters(const LayerList& layers) {
  std::vector<NamedTensor> found;
  Identities seen;
  for (int l = 0; l < layers.size(); ++l) {
    if (layers[l].module) add_named(layers[l].name, layers[l].module->named_parameters(), seen, found);
    int number = 0;
    for (const at::Tensor& tensor : layers[l].options.parameters) {
      if (seen.insert(tensor.unsafeGetTensorImpl()).second)
        found.push_back({cat(layers[l].name, ".", number++), tensor});
    }
  }
  return found;
}

std::vector<NamedTensor> all_buffers(const LayerList& layers) {
  std::vector<NamedTensor> found;
  Identities seen;
  for (int l = 0; l < layers.size(); ++l) {
    if (layers[l].module) add_named(layers[l].name, layers[l].module->named_buffers(), seen, found);
  }
  return found;
}

std::vector<NamedTensor> those_of(const LayerList& own, std::vector<NamedTensor> all,
                                  Tensors (*tensors_of)(const Layer&)) {
  Identities kept;
  for (int l = 0; l < own.size(); ++l) {
    for (const at::Tensor& tensor : tensors_of(own[l])) kept.insert(tensor.unsafeGetTensorImpl());
  }
  std::erase_if(all, [&](const NamedTensor& named) { return !kept.contains(named.tensor.unsafeGetTensorImpl()); });
  return all;
}

std::vector<NamedTensor> both_of(std::vector<NamedTensor> first, std::vector<NamedTensor> second) {
  for (NamedTensor& named : second) first.push_back(std::move(named));
  return first;
}

}  // namespace

std::vector<NamedTensor> named_parameters(const ModelPart& part) {
  return those_of(part.own, all_parameters(part.all), parameters);
}

std::vector<NamedTensor> named_buffers(const ModelPart& part) {
  return those_of(part.own, all_buffers(part.all), buffers);
}

std::vector<NamedTensor> named_weights(const ModelPart& part) {
  return both_of(named_parameters(part), named_buffers(part));
}

std::set<std::string> names_of_weights(const ModelPart& part) {
  std::set<std::string> names;
  for (const NamedTensor& named : both_of(all_parameters(part.all), all_buffers(part.all))) names.insert(named.name);
  return names;
}

void require_stored(const ModelPart& part) {
  std::vector<Problem> problems;
  std::set<std::string> names;
  for (const NamedTensor& named : both_of(all_parameters(part.all), all_buffers(part.all))) {
    if (!names.insert(named.name).second)
      problems.push_back({named.name, "", "is the name of two tensors; one of their layers must have another", ""});
    if (named.name.find('/') != named.name.npos)
      problems.push_back({named.name, "", "must have no \"/\", which stands before optimizers' states", ""});
  }
  for (const NamedTensor& named : named_weights(part)) {
    const at::ScalarType type = named.tensor.scalar_type();
    if (!ckpt::is_stored(type))
      problems.push_back({named.name, c10::toString(type), "is a type that files cannot hold", ""});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace braid::modules
