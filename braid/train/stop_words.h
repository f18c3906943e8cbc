// Where a text ends that comes in pieces: before the first of some words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid {

class StopWords {
 public:
  // None of them is empty.
  explicit StopWords(std::vector<std::string> words) : words_(std::move(words)) {}

  // What of the text is certain by now: not what may be the beginning of a word, nor a word and what is behind it. Of
  // words that end at the same byte the longest counts. However the text is cut into pieces, the same comes out.
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

}  // namespace braid
