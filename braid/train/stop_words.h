// Ends a text that comes in pieces before the first of some words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid::train {

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

}  // namespace braid::train
