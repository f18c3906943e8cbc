// Giving a field a value that came out of TOML.
// It judges the type only; whether the value is allowed is for broken_rule() in fields.h.
#pragma once

#include <optional>
#include <string>

#include "braid/spec/fields.h"
#include "braid/spec/toml_document.h"

namespace braid::spec {

// The value of an override: TOML, or bare words where the field holds strings, since shells eat quotes.

// Without the blanks and tabs at both ends.
std::string trimmed(const std::string& text);

// `text` as a value for `field`, whose type need not fit. Nothing where it is no TOML value.
std::optional<TomlValue> override_value(const Field& field, const std::string& text);

// Why a value could not be given, and the value that was probably meant ("" when there is no telling).
struct AssignFault {
  std::string rule;
  std::string nearest;
};

// Sets the field in `spec`, or leaves it and says why. An integer that its field cannot store is a fault here.
std::optional<AssignFault> assign(const Field& field, const TomlValue& value, RunSpec& spec);

}  // namespace braid::spec
