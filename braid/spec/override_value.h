// The value of an override: TOML, or bare words where the field holds strings, since shells eat quotes.
#pragma once

#include <optional>
#include <string>

#include "braid/spec/fields.h"
#include "braid/spec/toml_document.h"

namespace braid::spec {

// Without the blanks and tabs at both ends.
std::string trimmed(const std::string& text);

// `text` as a value for `field`, whose type need not fit. Nothing where it is no TOML value.
std::optional<TomlValue> override_value(const Field& field, const std::string& text);

}  // namespace braid::spec
