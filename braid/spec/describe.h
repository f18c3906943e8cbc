// Texts made from fields(): a run as TOML, and the configuration keys as help text and as documentation.
#pragma once

#include <string>

#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns a first configuration for users to edit: a small run as commented TOML. It trains on the text in the folder
// "text" without changes.
std::string starter_toml();

// Returns every key with its value, by section. If problems(spec) is empty, parse_run() of the text returns an equal
// RunSpec.
std::string to_toml(const RunSpec& spec);

// Returns the output of `braid config`: every key with default, rule and meaning.
std::string config_text();

// Returns the content of docs/configuration.md, byte for byte.
std::string config_markdown();

}  // namespace braid::spec
