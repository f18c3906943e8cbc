// Words that are one token wherever they stand in a text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::tokenize {

struct AddedToken {
  std::string content;  // not empty
  uint32_t token = 0;
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> added);

  struct Found {
    size_t begin = 0;
    size_t end = 0;
    uint32_t token = 0;
  };
  // The leftmost in text[at, ...), the longest of those that begin there; begin == end == text.size() when there is
  // none.
  Found find(std::string_view text, size_t at) const;

 private:
  std::vector<AddedToken> longest_first_;
  std::array<bool, 256> begins_{};  // bytes that an added token begins with
};

}  // namespace braid::tokenize
