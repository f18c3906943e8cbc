// Translates a regular expression from the syntax of tokenizer files (Oniguruma) to the syntax of PCRE2, with the same
// meaning. It does not match text.
#pragma once

#include <string>
#include <string_view>

namespace braid::tokenize {

struct RegexTranslation {
  std::string regex;    // regular expression for PCRE2 with the options UTF, UCP and MULTILINE
  std::string refused;  // the part whose meaning differs between the engines, and why; empty if there is none
};

// \s becomes the property White_Space, because PCRE2's \s adds U+180E. Refused are constructs whose meaning differs:
// sets within sets and && in a set, POSIX classes, \S in a set, \h \w \b \d \v and the like, codes by \x and \u, back
// references, inline options other than (?i: ... ).
RegexTranslation translate_regex(std::string_view regex);

}  // namespace braid::tokenize
