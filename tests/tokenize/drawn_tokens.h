// Tokens of bytes as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/data/corpus.h"

namespace braid {

// With end-of-text drawn as '|'.
inline std::string drawn(const data::Blend& blend) {
  std::string text;
  for (const auto& part : blend) {
    std::vector<int64_t> tokens(static_cast<size_t>(part.tokens->num_tokens()));
    part.tokens->read(0, tokens);
    for (const int64_t token : tokens) text.push_back(token == 256 ? '|' : static_cast<char>(token));
  }
  return text;
}

}  // namespace braid
