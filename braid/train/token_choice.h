// Chooses tokens by their probability, and ends texts at stop words.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::train {

// A filter that ends a text, which arrives in pieces, before the first stop word.
class StopWords {
 public:
  // REQUIRES: no word is empty.
  explicit StopWords(std::vector<std::string> words) : words_(std::move(words)) {}

  // Adds a piece and returns the text that has become final. Holds back bytes that may be the beginning of a word.
  // Drops a word and all text after it; if several words end at the same byte, the longest one. The whole text does not
  // depend on how it is cut into pieces.
  std::string add(std::string_view piece);
  bool met() const { return met_; }  // true once a word was found
  // Returns the text that was held back. Called after the last piece.
  std::string end();

 private:
  size_t held_back() const;

  std::vector<std::string> words_;
  std::string held_;
  bool met_ = false;
};

// Returns the index of the token that `draw`, uniform in [0, 1), chooses by nucleus sampling. It chooses among the
// fewest most likely tokens whose total probability is at least `top_p`; among all tokens if `top_p` is 1.
// REQUIRES: `probabilities` is not empty, is in descending order and sums to 1 over the whole vocabulary.
// Source: Holtzman et al., "The Curious Case of Neural Text Degeneration", section 3.1.
size_t chosen_place(std::span<const double> probabilities, double top_p, double draw);

struct TokenChoice {
  double temperature = 0.8;  // finite, at least 0; 0: always the most likely token
  int top_k = 0;             // choose among the k most likely tokens; 0: among all
  double top_p = 1;  // choose among the fewest most likely of these with this total probability; above 0, at most 1
};

// Returns the token that `draw`, uniform in [0, 1), chooses by the model's scores (logits). Of equal scores, the first
// one counts as the most likely. Makes a few passes over the scores, and sorts as many of them as the choice needs.
// REQUIRES: scores are finite, or -infinity for tokens that must not be chosen; at least one is finite.
size_t chosen_token(std::span<const double> scores, const TokenChoice& choice, double draw);

// Returns the log probability of `token` by the scores, at temperature 1.
double log_probability(std::span<const double> scores, size_t token);

}  // namespace braid::train
