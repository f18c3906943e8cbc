// Counts the operations of matrix products from their shapes.
#include "braid/model/model_flops.h"

#include <limits>

#include "braid/base/errors.h"
#include "braid/model/shape.h"

namespace braid::model {
namespace {

// Per token, a weight takes part in one multiply-add in forward and two in backward (input gradient, weight gradient).
constexpr double kFlopsPerWeight = 6;

// Returns the number of a block's weights that are applied to a token.
double block_weights(const ModelSpec& spec) {
  const double width = spec.width;
  const double keys = static_cast<double>(num_kv_heads(spec)) * head_width(spec);
  const double queries = static_cast<double>(spec.heads) * head_width(spec);
  const double attention = 2 * width * queries + 2 * width * keys;  // query and output, then key and value
  const double matrices = traits_of(spec.family).feed_forward == FeedForward::Gated ? 3 : 2;
  const double router = width * spec.experts;
  return attention + router + branches_per_token(spec) * matrices * width * ffn_width(spec);
}

}  // namespace

double model_flops_per_token(const ModelSpec& spec) {
  check(spec.vocab > 0, "the vocabulary is resolved before operations are counted");
  const double width = spec.width;
  const double weights = spec.layers * block_weights(spec) + width * spec.vocab;
  const double queries = static_cast<double>(spec.heads) * head_width(spec);
  // Attention has two products of all heads' features per token seen. Like weights, they count once in forward, twice
  // in backward.
  return kFlopsPerWeight * (weights + spec.layers * 2 * queries * mean_tokens_seen(spec));
}

double model_flop_utilisation(const ModelSpec& spec, double tokens_per_second, double peak_flops) {
  if (!(peak_flops > 0)) return std::numeric_limits<double>::quiet_NaN();
  return tokens_per_second * model_flops_per_token(spec) / peak_flops;
}

}  // namespace braid::model
