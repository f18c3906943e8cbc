// Keys under other names: misspelt, in another section, former, or as other programs call them (peer_names.h).
#pragma once

#include <string>

namespace braid::spec {

// The key that `name` is another name of, or that key with a value ("train.dtype=float16"). Dashes in front do not
// count. Empty: none.
std::string known_as(const std::string& name);

// known_as(name), else the key whose spelling is nearest; empty: none is near.
std::string meant_key(const std::string& name);

// The override that somebody meant who has written the key `name`, or another name of it, and `value` apart from it or
// not at all: "train.steps=5". Without a value that fits the key, it has the key's default. Where `value` is in other
// units than the key's, the key alone. Empty: `name` is no key's.
std::string meant_override(const std::string& name, const std::string& value);

}  // namespace braid::spec
