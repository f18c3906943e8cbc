// Learns merges from counted words: the part of training that BPE and WordPiece share.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "braid/tokenize/bpe_merges.h"

namespace braid::tokenize {

struct MergeTraining {
  size_t vocab = 0;           // number of tokens to reach
  int64_t min_frequency = 2;  // lowest count of a pair that becomes a token
  std::string prefix;         // of tokens that continue a word: a merge omits it from its right side
};

struct LearnedMerges {
  std::vector<std::string> tokens;  // by id: the first tokens, then the results of merges in the order found
  std::vector<BpeMerge> merges;     // by rank
};

// Repeatedly merges the most frequent pair of neighbouring tokens. Among equally frequent pairs, the pair with the
// smallest ids (left first) is merged. The result does not depend on the order of the words. It has fewer tokens than
// asked for if no pair is frequent enough. Source: Sennrich, Haddow & Birch, "Neural Machine Translation of Rare Words
// with Subword Units" (2016), algorithm 1.
class MergeLearner {
 public:
  // REQUIRES: `first_tokens` are distinct.
  MergeLearner(MergeTraining training, const std::vector<std::string>& first_tokens);

  // Adds a word that occurs `count` times, as ids of first tokens.
  void add_word(std::span<const uint32_t> tokens, int64_t count);
  // Learns from the words added. Calls `progress` from time to time with the number of tokens. Call it once.
  LearnedMerges learn(const std::function<void(int)>& progress);

 private:
  // The tokens of a distinct word: a range of one long array. The range shrinks in place.
  struct Word {
    size_t begin = 0;
    uint32_t size = 0;
    int64_t count = 0;
  };
  struct Waiting {
    int64_t count = 0;
    uint64_t pair = 0;            // a value of pair_of()
    std::vector<uint32_t> words;  // words that hold the pair or held it
  };
  static bool merges_later(const Waiting& a, const Waiting& b);

  uint32_t token_of(const std::string& spelling);
  void count_pairs();
  void change(uint64_t pair, int64_t by, uint32_t w);
  void queue_found();
  void push(Waiting waiting);
  Waiting pop();
  void merge(const Waiting& top);
  void merge_word(uint32_t w, const BpeMerge& merge);
  void keep_last_of_repeated();

  MergeTraining training_;
  LearnedMerges learned_;
  std::unordered_map<std::string, uint32_t> id_of_;
  std::vector<uint32_t> tokens_;
  std::vector<Word> words_;
  std::unordered_map<uint64_t, int64_t> pair_counts_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> found_;  // pairs whose count rose since the queue was last filled
  std::vector<Waiting> queue_;
};

}  // namespace braid::tokenize
