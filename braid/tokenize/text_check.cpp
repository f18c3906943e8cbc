// Reads a file's first bytes.
#include "braid/tokenize/text_check.h"

#include <algorithm>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/base/utf8.h"

namespace braid::tokenize {
namespace {

constexpr int64_t kHeadBytes = 8192;

}  // namespace

bool is_text_so_far(std::string_view head) {
  for (size_t at = 0; at < head.size();) {
    const Utf8Char c = utf8_at(head, at);
    if (c.code == kNotUtf8) return begins_character(head.substr(at));
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

}  // namespace braid::tokenize
