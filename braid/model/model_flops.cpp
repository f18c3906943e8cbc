// Counts the operations of a model from its graph.
#include "braid/model/model_flops.h"

#include <limits>

#include "braid/base/errors.h"
#include "braid/model/families.h"
#include "braid/model/op_table.h"

namespace braid::model {

double model_flops_per_token(const ModelSpec& spec, double picked) {
  check(spec.vocab > 0, "the vocabulary is resolved before operations are counted");
  Extents of_token = extents_of(spec, 1, 1);
  of_token['j'] = picked;
  return model_flops_per_token(graph_of(spec), of_token);
}

double model_flops_per_token(const ModelGraph& graph, const Extents& of_token) {
  double forward = 0;
  for (size_t kind = 0; kind < graph.kinds.size(); ++kind) {
    forward += graph.count_of(kind) * forward_flops(graph.kinds[kind]).at(of_token);
  }
  // Backward has two products for each of forward: for the gradients of the input and of the weight, or of both inputs.
  return 3 * forward;
}

double model_flop_utilisation(double flops, double peak_flops) {
  return peak_flops > 0 ? flops / peak_flops : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace braid::model
