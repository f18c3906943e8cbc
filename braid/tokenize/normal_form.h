// The normal forms C and D of Unicode, to which some tokenizers convert text first.
#pragma once

#include <string>
#include <string_view>

namespace braid::tokenize {

// Returns `text` in the normal form C. Bytes that are not UTF-8 are unchanged and combine with nothing. Thread-safe.
// Source: Unicode Standard Annex #15, "Unicode Normalization Forms"; Hangul: The Unicode Standard, section 3.12.
std::string normal_form_c(std::string_view text);

// Returns `text` in the normal form D, canonical decomposition. Other bytes and threads as above.
std::string normal_form_d(std::string_view text);

// Returns true if a quick check proves that normal_form_c(text) == text, as for ASCII and most text.
bool surely_normal_form_c(std::string_view text);

}  // namespace braid::tokenize
