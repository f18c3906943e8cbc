// Whether a file is text, told by its beginning.
#pragma once

#include <string>
#include <string_view>

namespace braid {

// Whether `head`, the first bytes of something longer, is text: UTF-8 without a NUL. A character that the end cuts is
// none the less one.
bool is_text_so_far(std::string_view head);

// Of the first 8 KiB of a file. Throws IoError.
bool begins_as_text(const std::string& file);

}  // namespace braid
