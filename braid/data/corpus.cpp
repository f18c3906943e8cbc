// The bigram model. It counts only pairs that occur in the measured tokens, so their number bounds its size.
#include "braid/data/corpus.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace braid::data {
namespace {

constexpr int64_t kMostLearned = int64_t{1} << 24, kMostMeasured = int64_t{1} << 20;
constexpr int64_t kRunPairs = 1 << 13;

int64_t num_pairs(const BlendPart& part) { return std::max<int64_t>(0, part.tokens->num_tokens() - 1); }

double sum_of_weights(const Blend& blend) {
  double sum = 0;
  for (const auto& part : blend) sum += part.weight;
  return sum;
}

// Calls `visit(first, second)` for `count` pairs of neighbouring tokens: all pairs, or runs spread evenly.
template <class Visit>
void each_pair(const TokenSource& tokens, int64_t count, const Visit& visit) {
  const int64_t pairs = tokens.num_tokens() - 1, runs = (count + kRunPairs - 1) / kRunPairs;
  std::vector<int64_t> run;
  for (int64_t r = 0; r < runs; ++r) {
    const int64_t size = std::min(kRunPairs, count - r * kRunPairs);
    const int64_t begin = count == pairs ? r * kRunPairs : std::min(r * (pairs / runs), pairs - size);
    run.resize(static_cast<size_t>(size) + 1);
    tokens.read(begin, run);
    for (size_t i = 0; i + 1 < run.size(); ++i) visit(run[i], run[i + 1]);
  }
}

// Weights of pairs of tokens: a hash table with open addressing, linear probing, and at least twice as many slots as
// pairs.
class PairWeights {
 public:
  explicit PairWeights(int64_t most) : slots_(std::bit_ceil(static_cast<uint64_t>(2 * most + 2))) {}

  double& add(int64_t first, int64_t second) {
    Slot& slot = *find(first, second);
    slot.key = key(first, second);
    return slot.weight;
  }
  // Returns null if the pair was never added.
  double* at(int64_t first, int64_t second) {
    Slot& slot = *find(first, second);
    return slot.key == kFree ? nullptr : &slot.weight;
  }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Slot {
    uint64_t key = kFree;
    double weight = 0;
  };

  static uint64_t key(int64_t first, int64_t second) {
    return static_cast<uint64_t>(first) << 32 | static_cast<uint64_t>(second);
  }
  Slot* find(int64_t first, int64_t second) {
    const uint64_t wanted = key(first, second), hash = wanted * 0x9E3779B97F4A7C15;
    size_t place = (hash ^ hash >> 32) & (slots_.size() - 1);
    while (slots_[place].key != wanted && slots_[place].key != kFree) place = (place + 1) & (slots_.size() - 1);
    return &slots_[place];
  }

  std::vector<Slot> slots_;
};

class BigramModel {
 public:
  BigramModel(int64_t vocab, int64_t most_pairs)
      : vocab_(static_cast<double>(vocab)), firsts_(static_cast<size_t>(vocab), 0.0), pairs_(most_pairs) {}

  void expect(int64_t first, int64_t second) { pairs_.add(first, second); }
  void learn(int64_t first, int64_t second, double weight) {
    firsts_[static_cast<size_t>(first)] += weight;
    if (double* seen = pairs_.at(first, second)) *seen += weight;
  }
  // Returns the negative log probability of a pair. REQUIRES: expect() was called for it.
  double nats(int64_t first, int64_t second) {
    return -std::log((*pairs_.at(first, second) + 1) / (firsts_[static_cast<size_t>(first)] + vocab_));
  }

 private:
  double vocab_;
  std::vector<double> firsts_;
  PairWeights pairs_;
};

// Returns the number of pairs to visit in each part: the part's fraction of `most`, limited to its own pairs.
std::vector<int64_t> visited(const Blend& blend, int64_t most) {
  std::vector<int64_t> counts;
  for (const auto& part : blend) {
    const auto share = static_cast<int64_t>(part.weight / sum_of_weights(blend) * static_cast<double>(most));
    counts.push_back(std::min(num_pairs(part), std::max<int64_t>(share, 1)));
  }
  return counts;
}

void learn(BigramModel& model, const Blend& train) {
  const auto counts = visited(train, kMostLearned);
  double all = 0;
  for (const int64_t count : counts) all += static_cast<double>(count);
  for (size_t p = 0; p < train.size(); ++p) {
    const double share = train[p].weight / sum_of_weights(train);
    const double weight = train.size() == 1 ? 1 : share * all / static_cast<double>(counts[p]);
    each_pair(*train[p].tokens, counts[p], [&](int64_t first, int64_t second) { model.learn(first, second, weight); });
  }
}

}  // namespace

int64_t num_tokens(const Blend& blend) {
  int64_t sum = 0;
  for (const auto& part : blend) sum += part.tokens->num_tokens();
  return sum;
}

std::vector<ContentMark> marks_like(const std::vector<ContentMark>& saved, const CorpusOrigin& origin) {
  std::vector<ContentMark> marks = origin.sources;
  for (size_t i = 0; i < std::min(marks.size(), saved.size()); ++i) {
    const bool may_be_same =
        marks[i].name == saved[i].name && marks[i].documents == saved[i].documents && marks[i].bytes == saved[i].bytes;
    const DigestKind kind = saved[i].digest.kind;
    if (may_be_same && kind != marks[i].digest.kind && origin.digest_as) marks[i].digest = origin.digest_as(i, kind);
  }
  return marks;
}

double bigram_entropy(const Corpus& corpus, int64_t vocab) {
  const auto counts = visited(corpus.validation, kMostMeasured);
  int64_t measured = 0;
  for (const int64_t count : counts) measured += count;
  if (measured == 0) return std::numeric_limits<double>::quiet_NaN();

  BigramModel model(vocab, measured);
  for (size_t p = 0; p < counts.size(); ++p) {
    each_pair(*corpus.validation[p].tokens, counts[p],
              [&](int64_t first, int64_t second) { model.expect(first, second); });
  }
  learn(model, corpus.train);
  double nats = 0, weights = 0;
  for (size_t p = 0; p < counts.size(); ++p) {
    if (counts[p] == 0) continue;
    double sum = 0;
    each_pair(*corpus.validation[p].tokens, counts[p],
              [&](int64_t first, int64_t second) { sum += model.nats(first, second); });
    nats += corpus.validation[p].weight * sum / static_cast<double>(counts[p]);
    weights += corpus.validation[p].weight;
  }
  return nats / weights;
}

}  // namespace braid::data
