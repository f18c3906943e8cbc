// Takes the library's messages apart.
#include "braid/base/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "braid/base/text.h"

namespace braid {
namespace {

std::string behind(const std::string& text, std::string_view mark) {
  const size_t at = text.find(mark);
  return at == text.npos ? text : text.substr(at + mark.size());
}

template <class Json>
JsonFault read(std::string_view text, Json& tree) {
  try {
    tree = Json::parse(text);
    return {};
  } catch (const nlohmann::json::parse_error& error) {
    const auto seen = text.substr(0, std::min(text.size(), std::max<size_t>(error.byte, 1) - 1));
    const bool is_empty = text.find_first_not_of(" \t\r\n") == text.npos;
    return {1 + std::count(seen.begin(), seen.end(), '\n'),
            "is not JSON: " + (is_empty ? "it is empty" : in_words(error))};
  } catch (const nlohmann::json::exception& error) {  // a number that no type holds
    return {1, "is not JSON that can be read: " + in_words(error)};
  }
}

}  // namespace

JsonFault read_json(std::string_view text, nlohmann::json& tree) { return read(text, tree); }
JsonFault read_json(std::string_view text, nlohmann::ordered_json& tree) { return read(text, tree); }

// "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while parsing value - invalid
// literal; last read: 'tru}'", where what was read may be most of a file.
std::string in_words(const std::exception& error) {
  const std::string message = behind(error.what(), "] ");
  if (!message.starts_with("parse error")) return message;
  return behind(behind(message.substr(0, message.find("; last read: ")), ": "), " - ");
}

}  // namespace braid
