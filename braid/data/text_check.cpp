// Reads a file's first bytes.
#include "braid/data/text_check.h"

#include <algorithm>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/data/unicode_classes.h"

namespace braid {
namespace {

constexpr int64_t kHeadBytes = 8192;

// Whether these last bytes may begin a character.
bool may_be_cut(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const size_t whole = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return lead >= 0xC2 && lead <= 0xF4 && bytes.size() < whole;
}

}  // namespace

bool is_text_so_far(std::string_view head) {
  for (size_t at = 0; at < head.size();) {
    const Utf8Char c = utf8_at(head, at);
    if (c.code == kNotUtf8) return may_be_cut(head.substr(at));
    if (c.code == 0) return false;
    at += c.bytes;
  }
  return true;
}

bool begins_as_text(const std::string& path) {
  const CheckedFile file(path, Links::Followed);
  std::string head(static_cast<size_t>(std::min(file.bytes(), kHeadBytes)), '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  return is_text_so_far(head);
}

}  // namespace braid
