// Counting parameters, and bytes of each.
#include "braid/predict/model_states.h"

#include "braid/predict/block_sizes.h"
#include "braid/predict/block_work.h"

namespace braid {
namespace {

// Values that the optimizer keeps for a parameter, beside its master.
double num_moments(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::AdamW:
      return 2;
    default:
      return 1;
  }
}

double block_parameters(const ModelSpec& model, double t) {
  const auto [h, q, kv, f, gated, rotary] = BlockSizes(model);
  const double matrices = h * (2 * q + 2 * kv) + (gated ? 3 : 2) * h * f;
  const double biases = gated ? (model.qkv_bias ? (q + 2 * kv) / t : 0) : (q + 2 * kv + f) / t + 2 * h;
  return matrices / t + biases + (gated ? 2 : 4) * h;
}

double table_size(const RunSpec& spec, const RunLayout& layout) {
  return static_cast<double>(layout.vocab) / layout.tensor * spec.model.width;
}

}  // namespace

StateBytes state_bytes(DType type, OptimizerKind kind, FormulaSet formulas) {
  const double element = element_bytes(type), single = 4;
  const bool narrow = element < single;
  const bool narrow_gradients = formulas == FormulaSet::Megatron && type == DType::Float16;
  const double of_moment = narrow ? single : element;
  return {element, narrow && !narrow_gradients ? single : element,
          num_moments(kind) * of_moment + (narrow ? single : 0)};
}

StateBytes sharded(StateBytes bytes, int zero, int shards) {
  if (zero >= 1) bytes.optimizer /= shards;
  if (zero >= 2) bytes.gradients /= shards;
  if (zero >= 3) bytes.weights /= shards;
  return bytes;
}

int num_shards(const RunSpec& spec, const RunLayout& layout) {
  const int of_data = layout.gradient_group.size / layout.copies_in_pipe;
  const int shards = spec.sync.zero_group > 0 ? spec.sync.zero_group : of_data;
  return shards == 1 ? 1 : shards * layout.copies_in_pipe;
}

double tied_parameters(const RunSpec& spec, const RunLayout& layout) {
  return spec.model.output_weights == OutputWeights::Untied ? 0 : table_size(spec, layout);
}

double stage_parameters(const RunSpec& spec, const RunLayout& layout, const StageLoad& load) {
  const ModelSpec& model = spec.model;
  const double table = table_size(spec, layout);
  double count = load.blocks * block_parameters(model, layout.tensor);
  if (load.embedding) count += table;
  if (load.embedding && traits_of(model.family).positions == PositionKind::Learned) {
    count += static_cast<double>(model.context) * model.width;
  }
  if (load.head) count += 2.0 * model.width;
  if (load.head && (model.output_weights == OutputWeights::Untied || !load.embedding)) count += table;
  return count;
}

}  // namespace braid
