// A trie of strings and their tokens, for the longest match at the beginning of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::tokenize {

// Thread-safe.
class TokenTrie {
 public:
  struct Entry {
    std::string text;
    uint32_t token = 0;
  };
  // REQUIRES: texts are distinct and not empty; tokens are below 2^32 - 1.
  explicit TokenTrie(std::vector<Entry> entries);

  struct Match {
    size_t bytes = 0;  // 0: no entry begins `text`
    uint32_t token = 0;
  };
  // Returns the longest entry that `text` begins with.
  Match longest(std::string_view text) const;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  // An edge of the trie in a hash table. Node 0 is the root, so no edge leads to it.
  struct Edge {
    uint64_t key = 0;  // parent node, then the byte in the lowest 8 bits
    uint32_t child = 0;
    uint32_t token = kNone;  // the token that ends at the child
  };

  size_t place_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ULL) >> shift_; }
  // Returns the edge with this key, or the free place where it belongs.
  Edge& place_for(uint64_t key);

  std::vector<Edge> edges_;  // open addressing, a power of two, at most half full
  int shift_ = 0;
};

}  // namespace braid::tokenize
