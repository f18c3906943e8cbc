// Assigns TOML values to fields. It checks the type only; broken_rule() in fields.h checks whether the value is
// allowed.
#pragma once

#include <optional>
#include <string>

#include "braid/spec/fields.h"
#include "braid/spec/toml_document.h"

namespace braid::spec {

// Returns `text` without the blanks and tabs at both ends.
std::string trimmed(const std::string& text);

// Returns the TOML value of an override's `text`; assign() checks its type. Strings and the strings of a list may be
// bare words, since shells remove quotes. Returns nothing if `text` has quotes and is not a TOML value.
std::optional<TomlValue> override_value(const Field& field, const std::string& text);

// The reason why a value could not be assigned.
struct AssignFault {
  std::string rule;     // "must be an integer"
  std::string nearest;  // the value that was probably meant; empty if unknown
};

// Sets the field in `spec`. If it cannot, it leaves the field unchanged and returns the fault. An integer that the
// field cannot store is a fault here.
std::optional<AssignFault> assign(const Field& field, const TomlValue& value, RunSpec& spec);

}  // namespace braid::spec
