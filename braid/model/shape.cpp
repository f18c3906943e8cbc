// Sizes that follow from a ModelSpec.
#include "braid/model/shape.h"

#include "braid/model/families.h"

namespace braid::model {

int num_kv_heads(const ModelSpec& spec) { return spec.kv_heads > 0 ? spec.kv_heads : spec.heads; }

bool can_split_heads(const ModelSpec& spec, int ranks) {
  const int keys = num_kv_heads(spec);
  return spec.heads % ranks == 0 && (keys % ranks == 0 || ranks % keys == 0);
}

int head_width(const ModelSpec& spec) { return spec.head_width > 0 ? spec.head_width : spec.width / spec.heads; }

double mean_tokens_seen(int context, int window) {
  const double all = context, newest = window;
  if (window == 0 || window >= context) return all / 2;
  return newest - newest * newest / (2 * all);
}

int parts_of_layer(const ModelSpec& spec) { return family_of(spec).traits.parts; }

int ffn_width(const ModelSpec& spec) { return spec.ffn > 0 ? spec.ffn : family_of(spec).ffn_width(spec); }

int64_t padded_vocab(const ModelSpec& spec, int tensor_size) {
  const int64_t multiple = int64_t{spec.vocab_multiple} * std::max(spec.vocab_parts, tensor_size);
  return (spec.vocab + multiple - 1) / multiple * multiple;
}

}  // namespace braid::model
