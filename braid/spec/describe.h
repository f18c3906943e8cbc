// A run as TOML, and the configuration keys as help text and as documentation, all made from fields().
// It prints nothing itself.
#pragma once

#include <string>

#include "braid/spec/run_spec.h"

namespace braid::spec {

// A first configuration, for people to change.

// A small run as TOML with comments, on the text in the folder "text". It trains as it is.
std::string starter_toml();

// Every key with its value, by section. parse_run() of it gives an equal RunSpec when problems(spec) is empty.
std::string to_toml(const RunSpec& spec);

// Returns the output of `braid config`: every key with default, rule and meaning.
std::string config_text();

// docs/configuration.md, byte for byte.
std::string config_markdown();

}  // namespace braid::spec
