// How often a word stands in a text.
#pragma once

#include <cstddef>
#include <string>

namespace braid {

inline size_t occurrences(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace braid
