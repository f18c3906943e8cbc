// Finds changes to modules. Parameters are compared by identity, and their location by storage.
#include "braid/module/module_changes.h"

#include <set>

#include "braid/base/text.h"
#include "braid/module/layer_facts.h"

namespace braid::modules {
namespace {

std::string kind_of(const at::Tensor& tensor) {
  const std::string where = tensor.is_cpu() ? "" : cat(" on ", tensor.device().str());
  return cat(c10::toString(tensor.scalar_type()), tensor.sizes(), where);
}

}  // namespace

std::vector<Problem> unknown_parameters(const LayerList& layers, const Tensors& known) {
  std::set<const void*> missing;
  for (const at::Tensor& tensor : known) missing.insert(tensor.unsafeGetTensorImpl());
  const std::set<const void*> kept = missing;
  std::vector<Problem> problems;
  for (int l = 0; l < layers.size(); ++l) {
    int number = 0;
    for (const at::Tensor& tensor : parameters(layers[l])) {
      const std::string name = cat(layers[l].name, ".", number++);
      missing.erase(tensor.unsafeGetTensorImpl());
      if (!tensor.requires_grad() || kept.contains(tensor.unsafeGetTensorImpl())) continue;
      problems.push_back({name, "released",
                          "must be kept in step once it is trained: by ModulePipeline::retrace(), or in another "
                          "DataParallel",
                          ""});
    }
  }
  if (!missing.empty()) {
    problems.push_back({"layers", cat(missing.size(), " parameters removed"),
                        "must stay what replicas were made of; construct the DataParallel or ModulePipeline again",
                        ""});
  }
  return problems;
}

std::vector<Problem> unfollowed_changes(const ModuleStore& modules, const SyncSpec& sync) {
  const bool sums = sync.replication == ReplicationKind::AllReduce;
  const bool kept_here = sums || sync.replication == ReplicationKind::LocalSgd;
  std::vector<Problem> problems;
  for (const param::Parameter& param : modules.store().params()) {
    const at::Tensor& own = modules.parameters()[param.index];
    const bool replaced = !modules.holds(param);
    const auto refuse = [&](std::string value, std::string rule) {
      problems.push_back({param.name, std::move(value), std::move(rule), ""});
    };
    if (replaced && kind_of(own) != kind_of(param.data)) {
      refuse(kind_of(own), cat("must stay ", kind_of(param.data), ", as when replicas were made"));
    } else if (replaced && !kept_here) {
      refuse("replaced", cat("cannot be taken over with sync.replication = ", sync.replication,
                             ", which has its values elsewhere too; load before, or construct the DataParallel or "
                             "ModulePipeline again"));
    }
    if (!own.requires_grad() && (!sums || sync.zero > 0 || modules.store().is_sharded())) {
      refuse("frozen",
             "may be frozen later where gradients are summed, sync.zero is 0 and all is in memory; else construct "
             "the DataParallel or ModulePipeline again");
    }
  }
  return problems;
}

}  // namespace braid::modules
