// Added tokens: strings that are one token wherever they stand in a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::tokenize {

enum class TokenKind : uint8_t {
  Hole,         // no token has this id
  Text,         // a token of the vocabulary
  Added,        // cut out of the raw text first, wherever it stands ("normalized": false)
  AddedToForm,  // its normal form is cut out of the normal form of the remaining text
  Special,      // never found in text
  Byte,         // only with FirstTokens::Characters: a byte of a character that is no token
};

struct AddedToken {
  std::string content;  // must not be empty
  uint32_t token = 0;
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> added);

  bool empty() const { return longest_first_.empty(); }

  struct Found {
    size_t begin = 0;
    size_t end = 0;
    uint32_t token = 0;
  };
  // Returns the leftmost added token in text[at, ...), and the longest of those that begin there. If there is none,
  // begin == end == text.size().
  Found find(std::string_view text, size_t at) const;

 private:
  std::vector<AddedToken> longest_first_;
  std::array<bool, 256> begins_{};  // whether an added token begins with this byte
};

}  // namespace braid::tokenize
