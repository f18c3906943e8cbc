// Pieces by any regular expression, with PCRE2.
#pragma once

#include <memory>
#include <string>

#include "braid/tokenize/pretokenizer.h"

namespace braid::tokenize {

// Throws ConfigError (key "regex") for an expression that does not compile or that translate_regex() refuses. A cursor
// throws RunError when the expression needs more backtracking than the engine allows.
std::unique_ptr<PieceCursor> regex_cursor(const std::string& regex);

}  // namespace braid::tokenize
