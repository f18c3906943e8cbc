// The byte alphabet of byte-level BPE: bytes to symbols and back.
#include "braid/tokenize/byte_alphabet.h"

#include <array>

#include "braid/tokenize/unicode_classes.h"

namespace braid::tokenize {
namespace {

constexpr uint32_t kFirstStandIn = 0x100;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint16_t, 256> symbol{};
  std::array<uint8_t, 68> byte_of_stand_in{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  uint32_t stand_ins = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (stands_for_itself(byte)) {
      alphabet.symbol[byte] = static_cast<uint16_t>(byte);
    } else {
      alphabet.byte_of_stand_in[stand_ins] = static_cast<uint8_t>(byte);
      alphabet.symbol[byte] = static_cast<uint16_t>(kFirstStandIn + stand_ins++);
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

uint32_t byte_symbol(unsigned char byte) { return kAlphabet.symbol[byte]; }

std::string byte_symbols(std::string_view bytes) {
  std::string symbols;
  for (const char byte : bytes) append_utf8(symbols, byte_symbol(static_cast<unsigned char>(byte)));
  return symbols;
}

std::optional<std::string> symbol_bytes(std::string_view symbols) {
  std::string bytes;
  for (size_t at = 0; at < symbols.size();) {
    const Utf8Char c = utf8_at(symbols, at);
    if (c.code < 256 && stands_for_itself(c.code)) {
      bytes.push_back(static_cast<char>(c.code));
    } else if (c.code >= kFirstStandIn && c.code - kFirstStandIn < kAlphabet.byte_of_stand_in.size()) {
      bytes.push_back(static_cast<char>(kAlphabet.byte_of_stand_in[c.code - kFirstStandIn]));
    } else {
      return std::nullopt;
    }
    at += c.bytes;
  }
  return bytes;
}

}  // namespace braid::tokenize
