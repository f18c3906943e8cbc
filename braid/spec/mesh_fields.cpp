// The fields of [mesh].
#include "braid/spec/field_builders.h"
#include "braid/spec/fields.h"

namespace braid::spec {

std::vector<Field> mesh_fields() {
  using namespace field_builders;
  const IntRange axis{1, kMaxAxis};
  return {
      mesh<&MeshSpec::pipe>("mesh.pipe", axis, "Pipeline stages the blocks are cut into; at most model.layers."),
      mesh<&MeshSpec::data>("mesh.data", axis, "Replicas that share the batch."),
      mesh<&MeshSpec::context>("mesh.context", axis,
                               "Ranks that split the tokens of each sequence; divides model.context."),
      mesh<&MeshSpec::context_parallel>(
          "mesh.context_parallel", one_of<ContextParallel>(),
          "How context ranks compute attention: \"ring\" passes keys and values around, \"all-gather\" gathers them, "
          "\"ulysses\" exchanges tokens for heads, \"ulysses-ring\" does so in groups and passes keys between groups."),
      mesh<&MeshSpec::ulysses_ranks>(
          "mesh.ulysses_ranks", at_least(0),
          "Context ranks of a group that exchanges tokens for heads under \"ulysses-ring\"; "
          "divides mesh.context. 0: the largest divisor of mesh.context that divides the key "
          "heads of a tensor rank."),
      mesh<&MeshSpec::expert>("mesh.expert", axis,
                              "Ranks that share the experts, and the batch as replicas do; 1 for now."),
      mesh<&MeshSpec::tensor>(
          "mesh.tensor", axis,
          "Ranks that share each matrix; divides model.heads, and divides model.kv_heads or is a multiple of it."),
      mesh<&MeshSpec::sequence_parallel>("mesh.sequence_parallel", Anything{},
                                         "Whether tensor ranks split the tokens of norms, dropout and residuals "
                                         "(sequence parallelism). mesh.tensor divides model.context / mesh.context."),
      mesh<&MeshSpec::tensor_overlap>("mesh.tensor_overlap", one_of<OverlapChoice>(),
                                      "Whether collectives of tensor ranks travel during products of backward (on) or "
                                      "products wait for them (off); "
                                      "\"auto\" measures both in the first steps and takes the faster."),
      mesh<&MeshSpec::ranks_per_node>(
          "mesh.ranks_per_node", at_least(0),
          "Consecutive ranks that collectives treat as one node, so that they have two levels, "
          "inside nodes and across; 1: one level; 0: nodes are hosts. Threads and shared "
          "memory have one level."),
      mesh<&MeshSpec::batch_shares>("mesh.batch_shares", WordOrNumbers{{kEqualShares}},
                                    "Parts of the batch that data ranks have: equal ones, or one whole number for each "
                                    "of mesh.data, in proportion "
                                    "to which they get the microbatches of each step, as in [3, 1]."),
  };
}

}  // namespace braid::spec
