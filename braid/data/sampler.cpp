// Turns, epochs and windows. It holds no state between calls.
#include "braid/data/sampler.h"

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/data/permutation.h"

namespace braid::data {
namespace {

std::vector<double> weights_of(const Blend& blend) {
  std::vector<double> weights;
  for (const auto& part : blend) weights.push_back(part.weight);
  return weights;
}

int64_t num_windows(const TokenSource& tokens, int context) {
  const int64_t num_tokens = tokens.num_tokens();
  if (num_tokens < int64_t{context} + 1) {
    throw ConfigError({{"model.context", cat(context),
                        cat("must be smaller than the number of tokens that data.paths gives to each of training and "
                            "validation (",
                            num_tokens, ")"),
                        num_tokens >= 2 ? cat(num_tokens - 1) : ""}});
  }
  return (num_tokens - 1) / context;
}

}  // namespace

Sampler::Sampler(const Blend& blend, int context, uint64_t seed) : context_(context), interleave_(weights_of(blend)) {
  check(context >= 1, "a window has at least one token to predict");
  for (const auto& [tokens, weight] : blend) {
    const std::string name = parts_.empty() ? "data.order" : cat("data.order.", parts_.size());
    parts_.push_back({tokens, stream_key(seed, name), num_windows(*tokens, context)});
  }
}

void Sampler::read(int64_t index, std::span<int64_t> tokens, int64_t first) const {
  check(first >= 0 && first + static_cast<int64_t>(tokens.size()) <= context_ + 1, "a sample has context + 1 tokens");
  const auto [part, begin] = place(index);
  part.tokens->read(begin + first, tokens);
}

void Sampler::read_documents(int64_t index, std::span<int64_t> documents) const {
  check(!documents.empty() && static_cast<int64_t>(documents.size()) <= context_ + 1, "a sample has its tokens only");
  const auto [part, begin] = place(index);
  part.tokens->read_documents(begin, documents);
  const int64_t first = documents[0];
  for (int64_t& document : documents) document -= first;
}

Sampler::Place Sampler::place(int64_t index) const {
  const auto [number_of_part, number] = interleave_.turn(index);
  const Part& part = parts_[static_cast<size_t>(number_of_part)];
  const auto epoch = static_cast<uint64_t>(number / part.num_windows);
  const Permutation order(part.num_windows, random_bits(part.order_key, epoch));
  return {part, order(number % part.num_windows) * context_};
}

uint64_t sample_hash(int64_t index, std::span<const int64_t> tokens) {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a over whole tokens
  for (const int64_t token : tokens) hash = (hash ^ static_cast<uint64_t>(token)) * 0x100000001B3;
  return random_bits(hash, static_cast<uint64_t>(index));
}

int64_t first_sample(const BatchShape& shape, int64_t step, int global_micro) {
  const auto [batch, microbatch] = shape;
  check(batch > 0 && microbatch > 0 && batch % microbatch == 0, "a batch is a whole number of microbatches");
  check(global_micro >= 0 && global_micro < batch / microbatch, "a microbatch lies inside its step");
  return step * batch + int64_t{global_micro} * microbatch;
}

}  // namespace braid::data
