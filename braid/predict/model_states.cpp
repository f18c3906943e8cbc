// Counting parameters, and bytes of each.
#include "braid/predict/model_states.h"

#include <cmath>
#include <vector>

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

double aligned(double count, const RunLayout& layout) {
  return std::ceil(count / layout.aligned_to) * layout.aligned_to;
}

// Of a norm over the hidden state.
double norm_parameters(const RunSpec& spec, const RunLayout& layout) {
  const bool biased = traits_of(spec.model.family).feed_forward != FeedForward::Gated;
  return (biased ? 2 : 1) * aligned(spec.model.width, layout);
}

double half_parameters(const RunSpec& spec, const RunLayout& layout, const std::vector<double>& sizes) {
  double count = norm_parameters(spec, layout);
  for (const double size : sizes) count += aligned(size, layout);
  return count;
}

double attention_parameters(const RunSpec& spec, const RunLayout& layout) {
  const ModelSpec& model = spec.model;
  const auto [h, q, kv, f, gated, rotary] = BlockSizes(model);
  const double t = layout.tensor, qkv = (q + 2 * kv) / t;
  std::vector<double> sizes{h * qkv, q / t * h};
  if (!gated) sizes.insert(sizes.end(), {qkv, h});
  if (gated && model.qkv_bias) sizes.push_back(qkv);
  if (model.qk_norm) sizes.insert(sizes.end(), 2, head_width(model));
  return half_parameters(spec, layout, sizes);
}

double feed_parameters(const RunSpec& spec, const RunLayout& layout) {
  const auto [h, q, kv, f, gated, rotary] = BlockSizes(spec.model);
  const double t = layout.tensor;
  std::vector<double> sizes{(gated ? 2 : 1) * h * f / t, f / t * h};
  if (!gated) sizes.insert(sizes.end(), {f / t, h});
  return half_parameters(spec, layout, sizes);
}

double table_size(const RunSpec& spec, const RunLayout& layout) {
  return aligned(static_cast<double>(layout.vocab) / layout.tensor * spec.model.width, layout);
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
  double count = load.of_blocks(attention_parameters(spec, layout), feed_parameters(spec, layout));
  if (load.embedding) count += table;
  if (load.embedding && traits_of(model.family).positions == PositionKind::Learned) {
    count += aligned(static_cast<double>(model.context) * model.width, layout);
  }
  if (load.head) count += norm_parameters(spec, layout);
  if (load.head && (model.output_weights == OutputWeights::Untied || !load.embedding)) count += table;
  return count;
}

}  // namespace braid
