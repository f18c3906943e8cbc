// A regular expression as tokenizer files write it (Oniguruma's syntax) in the syntax of PCRE2, with the same meaning.
// It matches nothing.
#pragma once

#include <string>
#include <string_view>

namespace braid::tokenize {

struct RegexTranslation {
  std::string regex;    // for PCRE2 with the options UTF, UCP and MULTILINE
  std::string refused;  // the part whose meaning the engines do not share, and why; empty when there is none
};

// \s becomes the property White_Space (PCRE2 adds U+180E). Refused are what reads differently: sets within sets and
// && in a set, POSIX classes, \S in a set, \h \w \b \d \v and their kin, codes by \x and \u, back references, inline
// options other than (?i: ... ).
RegexTranslation translate_regex(std::string_view regex);

}  // namespace braid::tokenize
