// The rules between fields that concern the all-reduce of gradients over replicas.
#include "braid/base/text.h"
#include "braid/spec/cross_rules.h"

namespace braid::spec {
namespace {

bool feeds_errors_back(const SyncSpec& sync) {
  return sync.compression != CompressionKind::None && sync.compression != CompressionKind::BFloat16 &&
         sync.compression != CompressionKind::Float16;
}

// Returns true if every node has equally many replicas or equal parts of one. Ranks are numbered along tensor first,
// then data, so the replicas of a rank are mesh.tensor apart.
bool spread_evenly(const MeshSpec& mesh) {
  if (mesh.ranks_per_node == 0 || mesh.data == 1) return true;
  if (mesh.tensor % mesh.ranks_per_node == 0) return true;  // a node holds ranks of one replica only
  if (mesh.ranks_per_node % mesh.tensor != 0) return false;
  const int replicas = mesh.ranks_per_node / mesh.tensor;
  return mesh.data % replicas == 0 || replicas % mesh.data == 0;
}

}  // namespace

std::vector<CrossRule> reduction_rules() {
  return {
      {{"mesh.ranks_per_node", "mesh.data", "mesh.tensor"},
       [](const View& at) { return spread_evenly(at.spec.mesh); },
       [](const View& at) {
         return cat("must put whole replicas on a node or parts of one, equally many on each (data ", at.spec.mesh.data,
                    " x tensor ", at.spec.mesh.tensor, ")");
       }},
      {{"sync.compression", "train.dtype"},
       [](const View& at) { return at.spec.train.dtype != DType::Float16 || !feeds_errors_back(at.spec.sync); },
       [](const View&) {
         return std::string(
             "must be none, bfloat16 or float16 when train.dtype is \"float16\": what the others owe is "
             "in units of a loss scale that changes");
       }},
      {{"sync.compression", "mesh.ranks_per_node"},
       [](const View& at) { return at.spec.mesh.ranks_per_node == 0 || !feeds_errors_back(at.spec.sync); },
       [](const View&) {
         return std::string(
             "must be none, bfloat16 or float16 when mesh.ranks_per_node is given: the others work on "
             "whole parameters, and a node sends parts");
       }},
  };
}

}  // namespace braid::spec
