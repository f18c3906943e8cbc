// Training of BPE with incremental pair counts. A queue orders pairs by the count they had when they were queued.
// Counts of queued pairs only fall. A pair whose count has changed is queued again, so the first pair with an unchanged
// count is the most frequent.
//
// A merge can form a token that already exists ("a" + "bc" after "ab" + "c"). Pairs with that token may then be queued
// twice, each time with the words found since. The reference does the same, so the order of merges is equal.
#include "braid/tokenize/bpe_trainer.h"

#include <algorithm>
#include <unordered_map>

#include "braid/base/errors.h"
#include "braid/tokenize/byte_alphabet.h"

namespace braid::tokenize {
namespace {

using Pair = uint64_t;  // a value of pair_of()

uint32_t left_of(Pair pair) { return static_cast<uint32_t>(pair >> 32); }
uint32_t right_of(Pair pair) { return static_cast<uint32_t>(pair); }

// The tokens of a distinct piece: a range of one long array. The range shrinks in place.
struct Word {
  size_t begin = 0;
  uint32_t size = 0;
  int64_t count = 0;
};

struct Waiting {
  int64_t count = 0;
  Pair pair = 0;
  std::vector<uint32_t> words;  // words that hold the pair or held it
};

bool merges_later(const Waiting& a, const Waiting& b) {
  return a.count != b.count ? a.count < b.count : a.pair > b.pair;
}

class Learner {
 public:
  Learner(const BpeTraining& training, const PieceCounts& counts) : training_(training) {
    add_tokens();
    add_words(counts);
    count_pairs();
  }

  BpeModel learn(const std::function<void(int)>& progress) {
    while (model_.tokens.size() < static_cast<size_t>(training_.vocab) && !queue_.empty()) {
      Waiting top = pop();
      const int64_t count = pair_counts_[top.pair];
      if (top.count != count) {
        top.count = count;
        push(std::move(top));
        continue;
      }
      if (count < std::max<int64_t>(training_.min_frequency, 1)) break;
      merge(top);
      if (progress && model_.merges.size() % 256 == 0) progress(static_cast<int>(model_.tokens.size()));
    }
    keep_last_of_repeated();
    return std::move(model_);
  }

 private:
  void add_tokens() {
    model_.pretokenizer.regexes = {pattern_regex(training_.pattern)};
    model_.tokens.push_back({training_.end_of_text, TokenKind::Special});
    std::vector<std::pair<uint32_t, char>> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(byte_symbol(static_cast<unsigned char>(byte)), byte);
    std::sort(bytes.begin(), bytes.end());
    for (const auto& [symbol, byte] : bytes) token_of(std::string(1, byte));
  }

  uint32_t token_of(const std::string& bytes) {
    const auto [entry, is_new] = id_of_.emplace(bytes, static_cast<uint32_t>(model_.tokens.size()));
    if (is_new) model_.tokens.push_back({bytes, TokenKind::Text});
    return entry->second;
  }

  void add_words(const PieceCounts& counts) {
    for (const auto& [piece, count] : counts.table()) {
      check(piece.size() < 0xFFFFFFFF && words_.size() < 0xFFFFFFFF, "pieces and their number fit 32 bits");
      words_.push_back({tokens_.size(), static_cast<uint32_t>(piece.size()), count});
      for (const char byte : piece) tokens_.push_back(id_of_.at(std::string(1, byte)));
    }
  }

  void count_pairs() {
    for (uint32_t w = 0; w < words_.size(); ++w) {
      const Word& word = words_[w];
      for (uint32_t i = 0; i + 1 < word.size; ++i) {
        change(pair_of(tokens_[word.begin + i], tokens_[word.begin + i + 1]), word.count, w);
      }
    }
    queue_found();
  }

  // Adds `by` to a pair's count. If `by` is not negative, records that word `w` holds the pair.
  void change(Pair pair, int64_t by, uint32_t w) {
    pair_counts_[pair] += by;
    if (by < 0) return;
    auto& words = found_[pair];
    if (words.empty() || words.back() != w) words.push_back(w);
  }

  void queue_found() {
    for (auto& [pair, words] : found_) {
      const int64_t count = pair_counts_[pair];
      if (count > 0) push({count, pair, std::move(words)});
    }
    found_.clear();
  }

  void push(Waiting waiting) {
    queue_.push_back(std::move(waiting));
    std::push_heap(queue_.begin(), queue_.end(), merges_later);
  }

  Waiting pop() {
    std::pop_heap(queue_.begin(), queue_.end(), merges_later);
    Waiting top = std::move(queue_.back());
    queue_.pop_back();
    return top;
  }

  void merge(const Waiting& top) {
    const uint32_t left = left_of(top.pair), right = right_of(top.pair);
    const uint32_t result = token_of(model_.tokens[left].bytes + model_.tokens[right].bytes);
    model_.merges.push_back({left, right, result});
    for (const uint32_t w : top.words) merge_word(w, model_.merges.back());
    queue_found();
  }

  // Replaces the pair in a word, from the left. Updates the counts of pairs with its neighbours; the count of the pair
  // itself is no longer needed.
  void merge_word(uint32_t w, const BpeMerge& merge) {
    Word& word = words_[w];
    uint32_t* const tokens = tokens_.data() + word.begin;
    uint32_t out = 0;
    for (uint32_t in = 0; in < word.size; ++in) {
      if (in + 1 >= word.size || tokens[in] != merge.left || tokens[in + 1] != merge.right) {
        tokens[out++] = tokens[in];
        continue;
      }
      if (out > 0) {
        change(pair_of(tokens[out - 1], merge.left), -word.count, w);
        change(pair_of(tokens[out - 1], merge.result), word.count, w);
      }
      ++in;
      if (in + 1 < word.size) {
        change(pair_of(merge.right, tokens[in + 1]), -word.count, w);
        change(pair_of(merge.result, tokens[in + 1]), word.count, w);
      }
      tokens[out++] = merge.result;
    }
    word.size = out;
  }

  // A pair that was queued twice was merged twice. Keeps only its last rank.
  void keep_last_of_repeated() {
    std::unordered_map<Pair, size_t> last;
    for (size_t rank = 0; rank < model_.merges.size(); ++rank) {
      last[pair_of(model_.merges[rank].left, model_.merges[rank].right)] = rank;
    }
    std::vector<BpeMerge> kept;
    for (size_t rank = 0; rank < model_.merges.size(); ++rank) {
      const BpeMerge& merge = model_.merges[rank];
      if (last[pair_of(merge.left, merge.right)] == rank) kept.push_back(merge);
    }
    model_.merges = std::move(kept);
  }

  const BpeTraining& training_;
  BpeModel model_;
  std::unordered_map<std::string, uint32_t> id_of_;
  std::vector<uint32_t> tokens_;
  std::vector<Word> words_;
  std::unordered_map<Pair, int64_t> pair_counts_;
  std::unordered_map<Pair, std::vector<uint32_t>> found_;  // pairs whose count rose since the queue was last filled
  std::vector<Waiting> queue_;
};

}  // namespace

BpeModel train_bpe(const BpeTraining& training, const PieceCounts& counts, const std::function<void(int)>& progress) {
  check(training.vocab >= 257, "a vocabulary of end-of-text and 256 bytes at least");
  return Learner(training, counts).learn(progress);
}

}  // namespace braid::tokenize
