// The traits of model families, and the sizes that depend on them.
#include "braid/model/shape.h"

namespace braid::model {

FamilyTraits traits_of(ModelFamily family) {
  static constexpr FamilyTraits kFamilies[] = {
      {FeedForward::Plain, KeyHeads::OfEachHead, PositionKind::Learned, HeadForm::Fixed},  // gpt2
      {FeedForward::Gated, KeyHeads::Shared, PositionKind::Rotary, HeadForm::Free},        // llama
  };
  static_assert(std::size(kFamilies) == words(ModelFamily()).size());
  return kFamilies[static_cast<int>(family)];
}

int num_kv_heads(const ModelSpec& spec) { return spec.kv_heads > 0 ? spec.kv_heads : spec.heads; }

int head_width(const ModelSpec& spec) { return spec.head_width > 0 ? spec.head_width : spec.width / spec.heads; }

double mean_tokens_seen(const ModelSpec& spec) {
  const double context = spec.context, window = spec.window;
  if (spec.window == 0 || spec.window >= spec.context) return context / 2;
  return window - window * window / (2 * context);
}

int ffn_width(const ModelSpec& spec) {
  if (spec.ffn > 0) return spec.ffn;
  if (traits_of(spec.family).feed_forward == FeedForward::Plain) return 4 * spec.width;
  constexpr int kMultiple = 64;
  const int64_t wanted = (int64_t{8} * spec.width + 2) / 3;
  return static_cast<int>((wanted + kMultiple - 1) / kMultiple * kMultiple);
}

int64_t padded_vocab(const ModelSpec& spec, int tensor_size) {
  const int64_t multiple = int64_t{spec.vocab_multiple} * tensor_size;
  return (spec.vocab + multiple - 1) / multiple * multiple;
}

}  // namespace braid::model
