// The tokens that the masked objective needs, by their ids in the vocabulary.
#pragma once

#include <cstdint>
#include <vector>

namespace braid::data {

struct MaskTokens {
  int64_t mask = 0, begin = 0, end = 0, padding = 0;  // [MASK], [CLS], [SEP], [PAD]
  std::vector<int64_t> ordinary;                      // all tokens but special ones

  bool is_special(int64_t token) const { return token == mask || token == begin || token == end || token == padding; }
};

}  // namespace braid::data
