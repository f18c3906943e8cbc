// Normal forms. Form C decomposes, orders and composes one stretch at a time. A stretch is a character that does not
// change and the following characters that may join it. utf8proc decomposes and composes. Marks are ordered here,
// because utf8proc's ordering takes time quadratic in their number.
#include "braid/tokenize/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>
#include <vector>

#include "braid/base/errors.h"
#include "braid/tokenize/unicode_classes.h"

namespace braid::tokenize {
namespace {

using Codes = std::vector<utf8proc_int32_t>;

constexpr auto kFormC = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
constexpr size_t kMostParts = 4;  // most characters of a canonical decomposition

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

// Appends the full decomposition of a code, with its marks not yet in order.
void decompose(uint32_t code, Codes& codes) {
  utf8proc_int32_t parts[kMostParts];
  int unused = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts, kMostParts, kFormC, &unused);
  check(count >= 1 && count <= static_cast<utf8proc_ssize_t>(kMostParts), "a character has one to four parts");
  codes.insert(codes.end(), parts, parts + count);
}

// Sorts the marks between two starters by their combining class. The sort is stable.
void put_in_order(Codes& codes) {
  for (auto begin = codes.begin(); begin != codes.end();) {
    const auto end = std::find_if(begin, codes.end(), [](auto code) { return combining_class(code) == 0; });
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end == codes.end() ? end : end + 1;
  }
}

void compose(Codes& codes) {
  const auto count = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kFormC);
  check(count >= 0, "decomposed characters compose");
  codes.resize(static_cast<size_t>(count));
}

// Returns a flag by code. It is false if the character never joins the one before it and is in normal form by itself.
std::vector<bool> codes_that_may_change() {
  std::vector<bool> may_change(kNumCodes);
  Codes parts;
  for (uint32_t code = 0; code < kNumCodes; ++code) {
    parts.clear();
    decompose(code, parts);
    if (combining_class(static_cast<utf8proc_int32_t>(code)) != 0) may_change[code] = true;
    if (parts.size() == 1 && parts[0] == static_cast<utf8proc_int32_t>(code)) continue;
    for (const auto behind : std::span(parts).subspan(1)) may_change[static_cast<size_t>(behind)] = true;
    compose(parts);
    const bool comes_back = parts.size() == 1 && parts[0] == static_cast<utf8proc_int32_t>(code);
    if (!comes_back) may_change[code] = true;
  }
  return may_change;
}

bool may_change(const Utf8Char& c) {
  static const std::vector<bool> kCodes = codes_that_may_change();
  return c.code != kNotUtf8 && kCodes[c.code];
}

void write(Codes& codes, std::string& out) {
  for (const auto code : codes) append_utf8(out, static_cast<uint32_t>(code));
  codes.clear();
}

void write_composed(Codes& codes, std::string& out) {
  put_in_order(codes);
  compose(codes);
  write(codes, out);
}

void write_decomposed(Codes& codes, std::string& out) {
  put_in_order(codes);
  write(codes, out);
}

}  // namespace

bool surely_normal_form_c(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Char c = utf8_at(text, at);
    if (may_change(c)) return false;
    at += c.bytes;
  }
  return true;
}

std::string normal_form_c(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Codes stretch;  // codes not yet written
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    if (!may_change(c)) write_composed(stretch, out);
    if (c.code == kNotUtf8) {
      out.push_back(text[at]);
    } else {
      decompose(c.code, stretch);
    }
    at += c.bytes;
  }
  write_composed(stretch, out);
  return out;
}

std::string normal_form_d(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Codes stretch, parts;  // a starter with its marks, not yet written; the parts of one character
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    parts.clear();
    if (c.code != kNotUtf8) decompose(c.code, parts);
    if (parts.empty() || combining_class(parts[0]) == 0) write_decomposed(stretch, out);
    if (parts.empty()) out.push_back(text[at]);
    stretch.insert(stretch.end(), parts.begin(), parts.end());
    at += c.bytes;
  }
  write_decomposed(stretch, out);
  return out;
}

}  // namespace braid::tokenize
