// Recognises text by the beginning of a file.
#pragma once

#include <string>
#include <string_view>

namespace braid::tokenize {

// Returns true if `head`, the first bytes of a longer text, is UTF-8 without a NUL. A character may be cut at its end.
bool is_text_so_far(std::string_view head);

// The same for the first 8 KiB of a file. Throws IoError.
bool begins_as_text(const std::string& file);

}  // namespace braid::tokenize
