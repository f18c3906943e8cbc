// Access to the parts of a tokenizer.json, of whatever types they are.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "braid/tokenize/added_tokens.h"
#include "braid/tokenize/bpe_vocabulary.h"
#include "braid/tokenize/faults.h"

namespace braid::tokenize {

// Returns the value under `key`; null if there is none.
inline const nlohmann::json& member(const nlohmann::json& json, const char* key) {
  static const nlohmann::json kNothing;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : kNothing;
}

inline bool is_true(const nlohmann::json& value) { return value.is_boolean() && value.get<bool>(); }

inline std::string type_of(const nlohmann::json& json) {
  const nlohmann::json& type = member(json, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

inline std::string shown(const nlohmann::json& value) {
  const std::string all = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return all.size() > 80 ? all.substr(0, 77) + "..." : all;
}

// Returns the steps of a part that is one step, a Sequence of steps, or null.
inline std::vector<nlohmann::json> steps_of(const nlohmann::json& part, const char* list) {
  if (part.is_null()) return {};
  if (type_of(part) != "Sequence") return {part};
  const nlohmann::json& all = member(part, list);
  return all.is_array() ? std::vector<nlohmann::json>(all.begin(), all.end()) : std::vector<nlohmann::json>();
}

// Adds the list "merges" of a model. Each merge is "left right" or [left, right].
void add_merges_of(const nlohmann::json& merges, BpeVocabulary& vocabulary, Faults& faults);

// Calls `add` with content, id and kind of each token of the list "added_tokens", which may be null. Adds faults for
// malformed tokens, and for tokens that are not special and set one of the keys `refused`.
void read_added_tokens(const nlohmann::json& added, const std::vector<const char*>& refused, Faults& faults,
                       const std::function<void(const std::string&, int64_t, TokenKind)>& add);

}  // namespace braid::tokenize
