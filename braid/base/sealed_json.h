// JSON files that end with a digest of all that stands before it, so that no change to one goes unnoticed.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "braid/base/digest.h"

namespace braid {

// `json`, an object with a member at least, indented by `indent` and sealed.
std::string sealed_json(const nlohmann::ordered_json& json, int indent);

// Calls `read` with the object that sealed_json() made `text` of, without its seal. Throws IoError naming `path` when
// the text is cut short or changed, and for whatever `read` finds missing or of another type.
void read_sealed_json(const std::string& path, const std::string& text,
                      const std::function<void(const nlohmann::ordered_json&)>& read);

// A digest as a member of `to` that has its kind for a name, and back. Throws IoError naming `path` when `from` has no
// digest of sixteen digits.
void put_digest(nlohmann::ordered_json& to, const NamedDigest& digest);
NamedDigest digest_in(const nlohmann::ordered_json& from, const std::string& path);

// Sixteen digits under `key`. Throws IoError naming `path`.
uint64_t hex_in(const nlohmann::ordered_json& from, const std::string& key, const std::string& path);

}  // namespace braid
