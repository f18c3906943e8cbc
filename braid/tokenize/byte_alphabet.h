// The printable characters that stand for bytes in byte-level vocabularies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid::tokenize {

// Returns the code point that stands for `byte`. Printable ASCII and Latin-1 characters stand for themselves. The code
// points U+0100, U+0101, ... stand for the other 68 bytes, in order. Source: openai/gpt-2, src/encoder.py,
// bytes_to_unicode.
uint32_t byte_symbol(unsigned char byte);

// Returns the symbols of `bytes`, in UTF-8.
std::string byte_symbols(std::string_view bytes);

// Returns the bytes that `symbols` (UTF-8) stand for, or nullopt if a character stands for none.
std::optional<std::string> symbol_bytes(std::string_view symbols);

}  // namespace braid::tokenize
