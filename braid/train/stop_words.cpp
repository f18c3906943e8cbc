// Byte by byte, so that pieces do not matter.
#include "braid/train/stop_words.h"

#include <algorithm>
#include <utility>

namespace braid::train {

std::string StopWords::add(std::string_view piece) {
  for (const char byte : piece) {
    if (met_) break;
    held_ += byte;
    size_t longest = 0;
    for (const std::string& word : words_) {
      if (held_.ends_with(word)) longest = std::max(longest, word.size());
    }
    if (longest == 0) continue;
    met_ = true;
    held_.resize(held_.size() - longest);
  }
  const size_t certain = met_ ? held_.size() : held_.size() - held_back();
  std::string text = held_.substr(0, certain);
  held_.erase(0, certain);
  return text;
}

std::string StopWords::end() { return std::exchange(held_, ""); }

// Bytes at the end that a word begins with.
size_t StopWords::held_back() const {
  size_t most = 0;
  for (const std::string& word : words_) {
    for (size_t size = std::min(word.size() - 1, held_.size()); size > most; --size) {
      if (held_.ends_with(std::string_view(word).substr(0, size))) most = size;
    }
  }
  return most;
}

}  // namespace braid::train
