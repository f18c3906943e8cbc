// JSON files that end with a digest of everything before it, which detects every change.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "braid/base/digest.h"

namespace braid {

// Returns `json`, an object with at least one member, indented by `indent` and sealed.
std::string sealed_json(const nlohmann::ordered_json& json, int indent);

// Calls `read` with the object of a text from sealed_json(), without its seal. Throws IoError naming `path` if the text
// is cut short or changed, or if `read` finds a member missing or of another type.
void read_sealed_json(const std::string& path, const std::string& text,
                      const std::function<void(const nlohmann::ordered_json&)>& read);

// put_digest() writes a digest as a member of `to` that is named after its kind; digest_in() reads it back. Throws
// IoError naming `path` if `from` has no digest of sixteen digits.
void put_digest(nlohmann::ordered_json& to, const NamedDigest& digest);
NamedDigest digest_in(const nlohmann::ordered_json& from, const std::string& path);

// Returns the value of the sixteen hexadecimal digits under `key`. Throws IoError naming `path`.
uint64_t hex_in(const nlohmann::ordered_json& from, const std::string& key, const std::string& path);

}  // namespace braid
