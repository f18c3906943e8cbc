// The order of samples: turns of the blend's parts, epochs and windows. Calls keep no state.
#include "braid/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/data/permutation.h"

namespace braid::data {
namespace {

// Returns whole numbers of turns that add up to kRound. Turns are rounded down, but to at least one. If turns are left,
// the parts with the largest remainders get one more. If the sum is too large, the parts with the most turns get one
// less.
std::vector<int> apportioned(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> turns;
  std::vector<double> remainders;
  for (const double weight : weights) {
    check(std::isfinite(weight) && weight > 0, "a part of a blend has a weight");
    const double exact = weight / sum * Interleave::kRound;
    turns.push_back(std::max(1, static_cast<int>(exact)));
    remainders.push_back(exact - turns.back());
  }
  int left = Interleave::kRound - std::accumulate(turns.begin(), turns.end(), 0);
  for (; left > 0; --left) {
    const auto most = static_cast<size_t>(std::max_element(remainders.begin(), remainders.end()) - remainders.begin());
    ++turns[most];
    remainders[most] -= 1;
  }
  for (; left < 0; ++left) --*std::max_element(turns.begin(), turns.end());
  return turns;
}

}  // namespace

Interleave::Interleave(const std::vector<double>& weights) {
  check(!weights.empty() && weights.size() <= kRound, "a blend has between 1 and 8192 parts");
  if (weights.size() == 1) {
    turns_ = {kRound};
    round_ = {{0, 0}};
    return;
  }
  turns_ = apportioned(weights);
  std::vector<int> taken(weights.size(), 0);
  // Before turn t is taken, part p is behind by turns[p] (t + 1) / kRound - taken[p]. These numbers add up to 1, so the
  // largest is above 0 and no part takes more than its turns.
  for (int64_t t = 0; t < kRound; ++t) {
    size_t furthest = 0;
    int64_t behind = -kRound * int64_t{kRound};
    for (size_t p = 0; p < taken.size(); ++p) {
      const int64_t here = turns_[p] * (t + 1) - int64_t{kRound} * taken[p];
      if (here > behind) behind = here, furthest = p;
    }
    round_.push_back({static_cast<int>(furthest), taken[furthest]++});
  }
}

Interleave::Turn Interleave::turn(int64_t index) const {
  check(index >= 0, "samples count from 0");
  const auto size = static_cast<int64_t>(round_.size());
  const Place& place = round_[static_cast<size_t>(index % size)];
  const int64_t per_round = size == 1 ? 1 : turns_[static_cast<size_t>(place.part)];
  return {place.part, index / size * per_round + place.before};
}

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

// Reads the documents' numbers, since a source gives no list of their ends.
std::vector<TextPiece> document_pieces(const TokenSource& tokens, int most) {
  constexpr int64_t kChunk = 1 << 16;
  std::vector<TextPiece> pieces;
  std::vector<int64_t> documents;
  int64_t begin = 0, document = 0;
  const auto add_document = [&](int64_t end) {
    for (; begin + 1 < end; begin += most) pieces.push_back({begin, std::min<int64_t>(most, end - 1 - begin)});
    begin = end;
  };
  for (int64_t first = 0; first < tokens.num_tokens(); first += kChunk) {
    documents.resize(std::min(kChunk, tokens.num_tokens() - first));
    tokens.read_documents(first, documents);
    for (int64_t i = 0; i < std::ssize(documents); ++i) {
      if (documents[i] != std::exchange(document, documents[i])) add_document(first + i);
    }
  }
  add_document(tokens.num_tokens());
  return pieces;
}

Sampler::Sampler(const Blend& blend, int context, uint64_t seed, Cut cut)
    : context_(context), interleave_(weights_of(blend)) {
  check(context >= 1, "a window has at least one token to predict");
  for (const auto& [tokens, weight] : blend) {
    const std::string name = parts_.empty() ? "data.order" : cat("data.order.", parts_.size());
    parts_.push_back({tokens, stream_key(seed, name), num_windows(*tokens, context), {}});
    if (cut == Cut::Windows) continue;
    parts_.back().pieces = document_pieces(*tokens, context);
    parts_.back().num_windows = std::ssize(parts_.back().pieces);
  }
}

void Sampler::read(int64_t index, std::span<int64_t> tokens, int64_t first) const {
  const auto [part, begin, length, readable] = place(index);
  check(first >= 0 && first + std::ssize(tokens) <= readable, "a sample has context + 1 tokens, or those of its piece");
  part.tokens->read(begin + first, tokens);
}

void Sampler::read_documents(int64_t index, std::span<int64_t> documents) const {
  const auto [part, begin, length, readable] = place(index);
  check(!documents.empty() && std::ssize(documents) <= readable, "a sample has its tokens only");
  part.tokens->read_documents(begin, documents);
  const int64_t first = documents[0];
  for (int64_t& document : documents) document -= first;
}

int64_t Sampler::length(int64_t index) const { return place(index).length; }

Sampler::Place Sampler::place(int64_t index) const {
  const auto [number_of_part, number] = interleave_.turn(index);
  const Part& part = parts_[static_cast<size_t>(number_of_part)];
  const auto epoch = static_cast<uint64_t>(number / part.num_windows);
  const Permutation order(part.num_windows, random_bits(part.order_key, epoch));
  const int64_t window = order(number % part.num_windows);
  if (part.pieces.empty()) return {part, window * context_, context_, context_ + 1};
  const auto& [begin, length] = part.pieces[static_cast<size_t>(window)];
  return {part, begin, length, length};
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
