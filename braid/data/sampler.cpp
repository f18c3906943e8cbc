// Windows in a new order every epoch. It holds no state between calls.
#include "braid/data/sampler.h"

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/data/permutation.h"

namespace braid {

Sampler::Sampler(std::span<const uint16_t> tokens, int context, uint64_t seed)
    : tokens_(tokens), context_(context), order_key_(stream_key(seed, "data.order")), num_windows_(0) {
  check(context >= 1, "a window has at least one token to predict");
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  if (num_tokens < int64_t{context} + 1) {
    throw ConfigError({{"model.context", cat(context),
                        cat("must be smaller than the number of tokens that data.paths gives to each of training and "
                            "validation (",
                            num_tokens, ")"),
                        num_tokens >= 2 ? cat(num_tokens - 1) : ""}});
  }
  num_windows_ = (num_tokens - 1) / context;
}

std::span<const uint16_t> Sampler::sample(int64_t index) const {
  check(index >= 0, "samples count from 0");
  const int64_t begin = window(index / num_windows_, index % num_windows_) * context_;
  return tokens_.subspan(static_cast<size_t>(begin), static_cast<size_t>(context_) + 1);
}

uint64_t Sampler::hash(int64_t first, int64_t count) const {
  uint64_t all = 0;
  for (int64_t index = first; index < first + count; ++index) {
    uint64_t one = 0xCBF29CE484222325;  // FNV-1a over whole tokens
    for (const uint16_t token : sample(index)) one = (one ^ token) * 0x100000001B3;
    all = random_bits(all, one);
  }
  return all;
}

int64_t Sampler::window(int64_t epoch, int64_t place) const {
  return Permutation(num_windows_, random_bits(order_key_, static_cast<uint64_t>(epoch)))(place);
}

int64_t first_sample(const BatchShape& shape, int64_t step, int data_rank, int micro) {
  const auto [batch, microbatch, data_size] = shape;
  check(batch > 0 && microbatch > 0 && data_size > 0 && batch % (microbatch * data_size) == 0,
        "a batch is a whole number of microbatches per data rank");
  const int64_t micros = batch / (microbatch * data_size);
  check(data_rank >= 0 && data_rank < data_size && micro >= 0 && micro < micros, "a microbatch lies inside its step");
  return step * batch + (data_rank * micros + micro) * microbatch;
}

}  // namespace braid
