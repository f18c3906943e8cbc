// The only reader of JSON in braid. It reports a fault as a sentence, with the line of the fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace braid {

struct JsonFault {
  int64_t line = 0;  // line of the fault in the text, from 1; 0: no fault
  std::string why;   // "is not JSON: unexpected end of input"
};

// Reads `text` into `tree`. The result gives the reason and the line if the text is refused; `tree` has no meaning
// then. Refused are:
// * text that is not JSON in UTF-8, bytes after the JSON, and a NUL;
// * a key that appears twice in one object;
// * more than 1000 nested lists and objects;
// * a text whose tree does not fit into memory.
JsonFault read_json(std::string_view text, nlohmann::json& tree);
// Same as above, with members in the order of the text. Looking up a member takes linear time.
JsonFault read_json(std::string_view text, nlohmann::ordered_json& tree);

// Returns the offset of the first NUL in a text, or npos. nlohmann's parser takes a NUL for the end of its input.
size_t nul_in(std::string_view text);

// Returns the message of an exception of the JSON library, without its number, its position and the last input read:
// "key 'step' not found", "unexpected end of input".
std::string in_words(const std::exception& error);

}  // namespace braid
