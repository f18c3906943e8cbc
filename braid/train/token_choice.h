// Choosing a token by its probability.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::train {

// Ends a text that comes in pieces before the first of some words.
class StopWords {
 public:
  // None of them is empty.
  explicit StopWords(std::vector<std::string> words) : words_(std::move(words)) {}

  // Returns the text that is certain by now, without a possible beginning of a word, and without a word and what
  // follows it. Of words that end at the same byte the longest counts. The result does not depend on how the text is
  // cut into pieces.
  std::string add(std::string_view piece);
  bool met() const { return met_; }
  // No more comes: what was held back.
  std::string end();

 private:
  size_t held_back() const;

  std::vector<std::string> words_;
  std::string held_;
  bool met_ = false;
};

// The place of the token that `draw`, uniform in [0, 1), chooses among those that a model finds most likely: the fewest
// that have the probability `top_p` together, all for 1. `probabilities` descend and sum to 1; there is at least one.
// Source: Holtzman et al., "The Curious Case of Neural Text Degeneration", section 3.1.
size_t chosen_place(std::span<const double> probabilities, double top_p, double draw);

struct TokenChoice {
  double temperature = 0.8;  // finite, at least 0; 0: always the most likely token
  int top_k = 0;             // choose among the k most likely; 0: among all
  double top_p = 1;  // and among the most likely of these that have this probability together; above 0, at most 1
};

// The token that `draw`, uniform in [0, 1), chooses by the model's scores. They are finite, or -infinity for what must
// not be chosen; at least one is finite. Of equal scores the first
// is the most likely. Takes a few passes over the scores and sorts those that matter.
size_t chosen_token(std::span<const double> scores, const TokenChoice& choice, double draw);

// The logarithm of the probability that the scores give `token`, at temperature 1.
double log_probability(std::span<const double> scores, size_t token);

}  // namespace braid::train
