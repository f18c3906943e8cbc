// Reading JSON that people write: a fault is reported in words, with the line it is on.
// It opens no files and knows no format.
#pragma once

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

// Of a key that stands twice in one object: the later one counts, or it is a fault.
enum class RepeatedKeys : uint8_t { Taken, Refused };

// Reads `text` into `tree`. Where it is no JSON, or has a key that is refused, the fault says so and on which line, and
// the tree means nothing.
JsonFault read_json(std::string_view text, nlohmann::json& tree, RepeatedKeys keys = RepeatedKeys::Taken);
JsonFault read_json(std::string_view text, nlohmann::ordered_json& tree);

// An exception of the JSON library without its number, place and what it read before: "key 'step' not found",
// "unexpected end of input".
std::string in_words(const std::exception& error);

}  // namespace braid
