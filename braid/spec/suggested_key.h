// Finds the key that a wrong name means: one misspelt, in another section, removed, or of another program
// (peer_names.h).
#pragma once

#include <string>

namespace braid::spec {

// Returns the key for which `name` is another name. If the name implies a value, the key has that value appended
// ("train.dtype=float16"). Leading dashes are ignored. Returns "" if there is no such key.
std::string known_as(const std::string& name);

// Returns the successor of a removed key (fields.h), else known_as(name), else the key with the nearest spelling.
// Returns "" if no key is near.
std::string suggested_key(const std::string& name);

// Returns the override that is meant by a key without "=", such as "train.steps=5" for "train.steps 5". `name` is the
// key or another name of it; `value` may be empty.
//  * If `value` does not fit the key, the override has the key's default, or true for a key that is true or false.
//  * If `name` takes its value in other units than the key, returns the key alone.
//  * If `name` means no key, returns "".
std::string suggested_override(const std::string& name, const std::string& value);

}  // namespace braid::spec
