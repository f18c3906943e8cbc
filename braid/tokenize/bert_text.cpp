// The rules of BERT over flags of code points, which come from the categories of utf8proc.
#include "braid/tokenize/bert_text.h"

#include <utf8proc.h>

#include <vector>

#include "braid/tokenize/normal_form.h"
#include "braid/tokenize/unicode_classes.h"

namespace braid::tokenize {
namespace {

constexpr uint8_t kSpace = 1;        // the property White_Space
constexpr uint8_t kControl = 2;      // removed by clean_text
constexpr uint8_t kPunctuation = 4;  // category P, and all ASCII symbols
constexpr uint8_t kIdeograph = 8;    // the blocks that BERT lists
constexpr uint8_t kAccent = 16;      // category Mn
constexpr uint8_t kLoneSpace = 32;   // white space that is white space in every normalized text
constexpr uint32_t kReplacement = 0xFFFD;

bool is_ideograph(uint32_t code) {
  constexpr struct {
    uint32_t first, last;
  } kBlocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                 {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const auto& block : kBlocks) {
    if (code >= block.first && code <= block.last) return true;
  }
  return false;
}

uint8_t flags_of_ascii(uint32_t code) {
  const bool alphanumeric =
      (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
  if (is_bert_blank(static_cast<char>(code))) return kSpace | kLoneSpace;
  if (code == 0xB || code == 0xC) return kSpace | kControl;
  if (code < 0x20 || code == 0x7F) return kControl;
  return alphanumeric ? 0 : kPunctuation;
}

uint8_t made_flags(uint32_t code) {
  if (code < 0x80) return flags_of_ascii(code);
  if (code == 0x85) return kSpace | kControl;
  if (code == kReplacement) return kControl;
  const uint8_t ideograph = is_ideograph(code) ? kIdeograph : 0;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
      return kControl;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return kSpace | kLoneSpace;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_MN:
      return kAccent;
    default:
      return ideograph;
  }
}

// Returns the flags of every code point, kNumCodes entries. The table (1 MiB) is made at the first call. Thread-safe.
const uint8_t* flags_of_codes() {
  static const std::vector<uint8_t> kFlags = [] {
    std::vector<uint8_t> flags(kNumCodes);
    for (uint32_t code = 0; code < kNumCodes; ++code) flags[code] = made_flags(code);
    return flags;
  }();
  return kFlags.data();
}

uint32_t code_at(std::string_view text, size_t at, uint32_t& bytes) {
  const Utf8Char c = utf8_at(text, at);
  bytes = c.bytes;
  return c.code == kNotUtf8 ? kReplacement : c.code;
}

// Applies clean_text and handle_chinese_chars, and replaces bytes that are not UTF-8.
std::string cleaned(std::string_view text, const BertRules& rules) {
  const uint8_t* const flags_of = flags_of_codes();
  std::string out;
  out.reserve(text.size());
  uint32_t bytes = 1;
  for (size_t at = 0; at < text.size(); at += bytes) {
    const uint32_t code = code_at(text, at, bytes);
    const uint8_t flags = flags_of[code];
    if (rules.clean_text && (flags & kControl) != 0) continue;
    if (rules.clean_text && (flags & kSpace) != 0) {
      out.push_back(' ');
    } else if (rules.handle_chinese_chars && (flags & kIdeograph) != 0) {
      out.push_back(' ');
      append_utf8(out, code);
      out.push_back(' ');
    } else if (code < 0x80) {
      out.push_back(static_cast<char>(code));
    } else {
      append_utf8(out, code);
    }
  }
  return out;
}

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

std::string without_accents(std::string_view text) {
  const uint8_t* const flags_of = flags_of_codes();
  const std::string decomposed = normal_form_d(text);
  std::string out;
  uint32_t bytes = 1;
  for (size_t at = 0; at < decomposed.size(); at += bytes) {
    const uint32_t code = code_at(decomposed, at, bytes);
    if ((flags_of[code] & kAccent) == 0) out.append(decomposed, at, bytes);
  }
  return out;
}

std::string lowercased(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  uint32_t bytes = 1;
  for (size_t at = 0; at < text.size(); at += bytes) {
    const uint32_t code = code_at(text, at, bytes);
    if (code < 0x80) {
      out.push_back(static_cast<char>(code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code));
    } else if (code == 0x130) {  // the only character whose lowercase form has two
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
    }
  }
  return out;
}

}  // namespace

std::string bert_form(std::string_view text, const BertRules& rules) {
  std::string form = cleaned(text, rules);
  if (rules.strip_accents && !is_ascii(form)) form = without_accents(form);
  return rules.lowercase ? lowercased(form) : form;
}

std::string_view BertWords::next() {
  const uint8_t* const flags_of = flags_of_codes();
  size_t begin = at_;
  uint32_t bytes = 1;
  for (; at_ < form_.size(); at_ += bytes) {
    const uint8_t flags = flags_of[code_at(form_, at_, bytes)];
    if ((flags & (kSpace | kPunctuation)) == 0) continue;
    if (at_ > begin) return form_.substr(begin, at_ - begin);
    if ((flags & kPunctuation) != 0) {
      at_ += bytes;
      return form_.substr(begin, bytes);
    }
    begin = at_ + bytes;
  }
  return form_.substr(begin);
}

BertPieces::BertPieces(const BertRules& rules)
    : flags_of_(flags_of_codes()),
      alone_(kPunctuation | kLoneSpace | (rules.handle_chinese_chars ? kIdeograph : uint8_t{0})) {}

size_t BertPieces::next() {
  if (is_bert_blank(text_[at_])) return skip_blanks();
  const size_t begin = at_;
  uint32_t bytes = 1;
  for (; at_ < text_.size(); at_ += bytes) {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    bytes = 1;
    if (!stands_alone(byte < 0x80 ? byte : code_at(text_, at_, bytes))) continue;
    return at_ == begin ? at_ += bytes : at_;
  }
  return at_;
}

}  // namespace braid::tokenize
