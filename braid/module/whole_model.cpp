// Meets, averages, gathers; members give back in the opposite order.
#include "braid/module/whole_model.h"

#include "braid/module/layer_facts.h"

namespace braid::modules {

// Without a Replication nobody knows here whether replicas are apart: then buffers are kept in any case.
WholeModel::WholeModel(const LayerList& layers, const SyncedModules* synced, Communicator& replicas) {
  if (synced) synced->replication().meet();
  const bool apart = synced && synced->replication().replicas() == sync::Replicas::Apart;
  if (apart) mean_.emplace(synced->store(), replicas);
  if (apart || !synced) own_.emplace(buffers(layers));
  broadcast_buffers(layers, replicas);
  for (int layer = 0; synced && layer < layers.size(); ++layer) whole_.emplace_back(synced->replication(), layer);
}

}  // namespace braid::modules
