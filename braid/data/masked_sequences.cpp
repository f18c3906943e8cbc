// Chooses tokens by a partial shuffle of the places that may be chosen.
#include "braid/data/masked_sequences.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"

namespace braid::data {
namespace {

constexpr int64_t kNone = -1;
constexpr double kBecomeMask = 0.8, kBecomeRandom = 0.1;

// Returns a number below `count`.
int64_t below(int64_t count, uint64_t key, int64_t index) {
  return std::min(count - 1,
                  static_cast<int64_t>(uniform(key, static_cast<uint64_t>(index)) * static_cast<double>(count)));
}

// Returns `count` of the places, or all if there are fewer, in ascending order.
std::vector<int64_t> chosen(std::vector<int64_t> places, int count, uint64_t key) {
  const auto all = std::ssize(places);
  for (int64_t i = 0; i < std::min<int64_t>(count, all); ++i) std::swap(places[i], places[i + below(all - i, key, i)]);
  places.resize(std::min<int64_t>(count, all));
  std::ranges::sort(places);
  return places;
}

int64_t replaced(int64_t token, int64_t place, const MaskTokens& tokens, uint64_t key) {
  const double draw = uniform(stream_key(key, "masks.kind"), static_cast<uint64_t>(place));
  if (draw < kBecomeMask) return tokens.mask;
  if (draw >= kBecomeMask + kBecomeRandom) return token;
  return tokens.ordinary[below(std::ssize(tokens.ordinary), stream_key(key, "masks.token"), place)];
}

int masks_of(const MaskedShape& shape, int64_t text) {
  const int64_t share = std::lround(shape.share * static_cast<double>(text));
  return static_cast<int>(std::min(std::min<int64_t>(shape.masks, text), std::max<int64_t>(1, share)));
}

}  // namespace

MaskedSequence masked_sequence(std::span<const int64_t> text, std::span<const int64_t> documents,
                               const MaskedShape& shape, const MaskTokens& tokens, uint64_t key) {
  check(!text.empty() && std::ssize(text) + 2 <= shape.context && documents.size() == text.size(),
        "a text fits into its sequence");
  MaskedSequence sequence{{tokens.begin}, {}, {}, {documents.front()}};
  sequence.tokens.insert(sequence.tokens.end(), text.begin(), text.end());
  sequence.tokens.push_back(tokens.end);
  sequence.documents.insert(sequence.documents.end(), documents.begin(), documents.end());
  sequence.documents.push_back(documents.back());
  sequence.tokens.resize(shape.context, tokens.padding);
  sequence.documents.resize(shape.context, documents.back() + 1);
  std::vector<int64_t> places;
  for (int64_t place = 1; place <= std::ssize(text); ++place) {
    if (!tokens.is_special(sequence.tokens[place])) places.push_back(place);
  }
  for (const int64_t place :
       chosen(std::move(places), masks_of(shape, std::ssize(text)), stream_key(key, "masks.place"))) {
    int64_t& token = sequence.tokens[place];
    sequence.rows.push_back(place);
    sequence.targets.push_back(token);
    token = replaced(token, place, tokens, key);
  }
  sequence.rows.resize(shape.masks, 0);
  sequence.targets.resize(shape.masks, kNone);
  return sequence;
}

MaskedSampler::MaskedSampler(const Blend& blend, const MaskedShape& shape, MaskTokens tokens, uint64_t seed)
    : shape_(shape),
      tokens_(std::move(tokens)),
      key_(stream_key(seed, "masks")),
      sampler_(blend, shape.context - 2, seed, shape.cut) {}

MaskedSequence MaskedSampler::read(int64_t index) const {
  std::vector<int64_t> text(sampler_.length(index)), documents(text.size());
  sampler_.read(index, text);
  sampler_.read_documents(index, documents);
  return masked_sequence(text, documents, shape_, tokens_, random_bits(key_, static_cast<uint64_t>(index)));
}

int64_t MaskedSampler::num_targets(int64_t first, int64_t count) const {
  if (shape_.cut == Cut::Windows) return count * shape_.masks;
  int64_t sum = 0;
  for (int64_t i = first; i < first + count; ++i) sum += masks_of(shape_, sampler_.length(i));
  return sum;
}

}  // namespace braid::data
