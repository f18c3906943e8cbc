// A first configuration, for people to change.
#pragma once

#include <string>

namespace braid::spec {

// A small run as TOML with comments, on the text in the folder "text". It trains as it is.
std::string starter_toml();

}  // namespace braid::spec
