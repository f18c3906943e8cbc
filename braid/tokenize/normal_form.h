// The normal form C of Unicode, which some tokenizers bring text into first.
#pragma once

#include <string>
#include <string_view>

namespace braid::tokenize {

// `text` in the normal form C. Bytes that are not UTF-8 stay as they are and join nothing. Any thread may call.
// Source: Unicode Standard Annex #15, "Unicode Normalization Forms"; Hangul: The Unicode Standard, section 3.12.
std::string normal_form_c(std::string_view text);

// Returns true if a quick look shows that normal_form_c(text) == text: for ASCII and most text.
bool surely_normal_form_c(std::string_view text);

}  // namespace braid::tokenize
