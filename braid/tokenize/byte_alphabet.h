// The printable character by which a byte-level vocabulary writes each byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid::tokenize {

// The code point that stands for `byte`: printable ASCII and Latin-1 stand for themselves, the other 68 bytes, in
// order, for U+0100, U+0101, ... Source: openai/gpt-2, src/encoder.py, bytes_to_unicode.
uint32_t byte_symbol(unsigned char byte);

// `bytes` as such a vocabulary writes them, in UTF-8.
std::string byte_symbols(std::string_view bytes);

// The bytes that `symbols` (UTF-8) stand for; empty when a character stands for none.
std::optional<std::string> symbol_bytes(std::string_view symbols);

}  // namespace braid::tokenize
