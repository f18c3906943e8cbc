// The one reader of JSON. A fault is reported in words, with the line it is on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace braid {

struct JsonFault {
  int64_t line = 0;  // of the text, from 1; 0: it is JSON
  std::string why;   // "is not JSON: unexpected end of input"
};

// Reads `text` into `tree`. The fault says why the text is refused and on which line; the tree means nothing then.
// Refused are: text that is not JSON in UTF-8, bytes behind the JSON, a NUL, a key that stands twice in one object,
// more than 1000 lists and objects in one another, and a text whose tree does not fit into memory.
JsonFault read_json(std::string_view text, nlohmann::json& tree);
// The same with members in the order of the text. Each member is appended: looking one up later takes linear time.
JsonFault read_json(std::string_view text, nlohmann::ordered_json& tree);

// The first NUL of a text, or npos. nlohmann's parser takes a NUL for the end of its input.
size_t nul_in(std::string_view text);

// An exception of the JSON library without its number, place and what it read before: "key 'step' not found",
// "unexpected end of input".
std::string in_words(const std::exception& error);

}  // namespace braid
