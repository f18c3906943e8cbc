// Merging with incremental pair counts. A queue orders pairs by the count they had when they were queued.
// Counts of queued pairs only fall. A pair whose count has changed is queued again, so the first pair with an unchanged
// count is the most frequent.
//
// A merge can form a token that already exists ("a" + "bc" after "ab" + "c"). Pairs with that token may then be queued
// twice, each time with the words found since. The reference does the same, so the order of merges is equal.
#include "braid/tokenize/merge_learner.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::tokenize {
namespace {

uint32_t left_of(uint64_t pair) { return static_cast<uint32_t>(pair >> 32); }
uint32_t right_of(uint64_t pair) { return static_cast<uint32_t>(pair); }

}  // namespace

bool MergeLearner::merges_later(const Waiting& a, const Waiting& b) {
  return a.count != b.count ? a.count < b.count : a.pair > b.pair;
}

MergeLearner::MergeLearner(MergeTraining training, const std::vector<std::string>& first_tokens)
    : training_(std::move(training)) {
  for (const std::string& token : first_tokens) token_of(token);
  check(learned_.tokens.size() == first_tokens.size(), "distinct first tokens");
}

LearnedMerges MergeLearner::learn(const std::function<void(int)>& progress) {
  count_pairs();
  while (learned_.tokens.size() < training_.vocab && !queue_.empty()) {
    Waiting top = pop();
    const int64_t count = pair_counts_[top.pair];
    if (top.count != count) {
      top.count = count;
      push(std::move(top));
      continue;
    }
    if (count < std::max<int64_t>(training_.min_frequency, 1)) break;
    merge(top);
    if (progress && learned_.merges.size() % 256 == 0) progress(static_cast<int>(learned_.tokens.size()));
  }
  keep_last_of_repeated();
  return std::move(learned_);
}

uint32_t MergeLearner::token_of(const std::string& spelling) {
  const auto [entry, is_new] = id_of_.emplace(spelling, static_cast<uint32_t>(learned_.tokens.size()));
  if (is_new) learned_.tokens.push_back(spelling);
  return entry->second;
}

void MergeLearner::add_word(std::span<const uint32_t> tokens, int64_t count) {
  check(tokens.size() < 0xFFFFFFFF && words_.size() < 0xFFFFFFFF, "pieces and their number fit 32 bits");
  words_.push_back({tokens_.size(), static_cast<uint32_t>(tokens.size()), count});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void MergeLearner::count_pairs() {
  for (uint32_t w = 0; w < words_.size(); ++w) {
    const Word& word = words_[w];
    for (uint32_t i = 0; i + 1 < word.size; ++i) {
      change(pair_of(tokens_[word.begin + i], tokens_[word.begin + i + 1]), word.count, w);
    }
  }
  queue_found();
}

// Adds `by` to a pair's count. If `by` is not negative, records that word `w` holds the pair.
void MergeLearner::change(uint64_t pair, int64_t by, uint32_t w) {
  pair_counts_[pair] += by;
  if (by < 0) return;
  auto& words = found_[pair];
  if (words.empty() || words.back() != w) words.push_back(w);
}

void MergeLearner::queue_found() {
  for (auto& [pair, words] : found_) {
    const int64_t count = pair_counts_[pair];
    if (count > 0) push({count, pair, std::move(words)});
  }
  found_.clear();
}

void MergeLearner::push(Waiting waiting) {
  queue_.push_back(std::move(waiting));
  std::push_heap(queue_.begin(), queue_.end(), merges_later);
}

MergeLearner::Waiting MergeLearner::pop() {
  std::pop_heap(queue_.begin(), queue_.end(), merges_later);
  Waiting top = std::move(queue_.back());
  queue_.pop_back();
  return top;
}

void MergeLearner::merge(const Waiting& top) {
  const uint32_t left = left_of(top.pair), right = right_of(top.pair);
  const std::string& behind = learned_.tokens[right];
  const size_t prefix = behind.starts_with(training_.prefix) ? training_.prefix.size() : 0;
  const uint32_t result = token_of(learned_.tokens[left] + behind.substr(prefix));
  learned_.merges.push_back({left, right, result});
  for (const uint32_t w : top.words) merge_word(w, learned_.merges.back());
  queue_found();
}

// Replaces the pair in a word, from the left. Updates the counts of pairs with its neighbours; the count of the pair
// itself is no longer needed.
void MergeLearner::merge_word(uint32_t w, const BpeMerge& merge) {
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
void MergeLearner::keep_last_of_repeated() {
  std::unordered_map<uint64_t, size_t> last;
  for (size_t rank = 0; rank < learned_.merges.size(); ++rank) {
    last[pair_of(learned_.merges[rank].left, learned_.merges[rank].right)] = rank;
  }
  std::vector<BpeMerge> kept;
  for (size_t rank = 0; rank < learned_.merges.size(); ++rank) {
    const BpeMerge& merge = learned_.merges[rank];
    if (last[pair_of(merge.left, merge.right)] == rank) kept.push_back(merge);
  }
  learned_.merges = std::move(kept);
}

}  // namespace braid::tokenize
