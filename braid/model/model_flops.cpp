// Counts the operations of a model from its graph.
#include "braid/model/model_flops.h"

#include <limits>

#include "braid/base/errors.h"
#include "braid/model/families.h"
#include "braid/model/op_table.h"
#include "braid/model/trained.h"

namespace braid::model {
namespace {

// Returns the products of backward that frozen parameters save, each as large as the op's forward: of the gradients of
// an input, or of an op without parameters of both inputs, and of a weight.
Terms unneeded_flops(const BlockGraph& block) {
  const std::vector<bool> has_gradient = values_with_gradient(block);
  Terms sum;
  for (const Op& op : block.ops) {
    const bool of_input = has_gradient[op.in[0]];
    const bool of_other = op.params.empty() ? of_input : is_trained(op.params[0]);
    sum += (!of_input + !of_other) * op.row->flops({block, op});
  }
  return sum;
}

}  // namespace

double model_flops_per_token(const ModelSpec& spec, double picked) {
  check(spec.vocab > 0, "the vocabulary is resolved before operations are counted");
  Extents of_token = extents_of(spec, 1, 1);
  of_token['j'] = picked;
  return model_flops_per_token(graph_of(spec), of_token);
}

double model_flops_per_token(const ModelGraph& graph, const Extents& of_token) {
  double forward = 0, unneeded = 0;
  for (size_t kind = 0; kind < graph.kinds.size(); ++kind) {
    forward += graph.count_of(kind) * forward_flops(graph.kinds[kind]).at(of_token);
    unneeded += graph.count_of(kind) * unneeded_flops(graph.kinds[kind]).at(of_token);
  }
  // Backward has two products for each of forward: for the gradients of the input and of the weight, or of both inputs.
  return 3 * forward - unneeded;
}

double model_flop_utilisation(double flops, double peak_flops) {
  return peak_flops > 0 ? flops / peak_flops : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace braid::model
