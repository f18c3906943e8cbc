// The detection of a file's format: first by magic bytes, then by the positions of NULs, then by JSON.
#include "braid/tokenize/file_format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "braid/base/checked_file.h"
#include "braid/base/json_text.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"

namespace braid::tokenize {
namespace {

using std::string_view_literals::operator""sv;

constexpr int64_t kFormatHeadBytes = 8192;
constexpr int64_t kMostOfJsonLines = 64 << 20;  // most bytes read to find the ends of two lines

struct Magic {
  FileFormat format;
  std::string_view bytes, end;  // first bytes; last bytes before the final `end_skip`
  size_t end_skip;
  const char* name;
  const char* remedy;
};

constexpr const char* kRowsAsLines = "write its rows as a .jsonl file, one JSON object with the text per line";
constexpr const char* kFromUtf16 = "give the output of `iconv -f UTF-16 -t UTF-8`";
constexpr const char* kFromUtf32 = "give the output of `iconv -f UTF-32 -t UTF-8`";

// A format whose first magic bytes could begin a text is also checked for its magic bytes at the end.
constexpr std::array kMagics = {
    Magic{FileFormat::Compressed, "\x1f\x8b"sv, ""sv, 0, "gzip", "give the output of `gzip -dc`"},
    Magic{FileFormat::Compressed, "\x28\xb5\x2f\xfd"sv, ""sv, 0, "zstd", "give the output of `zstd -dc`"},
    Magic{FileFormat::Compressed, "\xfd\x37\x7a\x58\x5a\x00"sv, ""sv, 0, "xz", "give the output of `xz -dc`"},
    Magic{FileFormat::Compressed, "\x04\x22\x4d\x18"sv, ""sv, 0, "lz4", "give the output of `lz4 -dc`"},
    Magic{FileFormat::Compressed, "PK\x03\x04"sv, ""sv, 0, "zip", "give the files that `unzip` writes"},
    Magic{FileFormat::Compressed, "PK\x05\x06"sv, ""sv, 0, "zip", "give the files that `unzip` writes"},
    Magic{FileFormat::Compressed, "7z\xbc\xaf\x27\x1c"sv, ""sv, 0, "7z", "give the files that `7z x` writes"},
    Magic{FileFormat::Columnar, "PAR1"sv, "PAR1"sv, 0, "Parquet", kRowsAsLines},
    Magic{FileFormat::Columnar, "ARROW1\0\0"sv, ""sv, 0, "Arrow", kRowsAsLines},
    Magic{FileFormat::Columnar, "\xff\xff\xff\xff"sv, ""sv, 0, "Arrow stream", kRowsAsLines},
    Magic{FileFormat::Columnar, "FEA1"sv, "FEA1"sv, 0, "Feather", kRowsAsLines},
    Magic{FileFormat::Columnar, "Obj\x01"sv, ""sv, 0, "Avro", kRowsAsLines},
    Magic{FileFormat::Columnar, "ORC"sv, "ORC"sv, 1, "ORC", kRowsAsLines},
    Magic{FileFormat::Utf32, "\xff\xfe\0\0"sv, ""sv, 0, "UTF-32", kFromUtf32},
    Magic{FileFormat::Utf32, "\0\0\xfe\xff"sv, ""sv, 0, "UTF-32", kFromUtf32},
    Magic{FileFormat::Utf16, "\xff\xfe"sv, ""sv, 0, "UTF-16", kFromUtf16},
    Magic{FileFormat::Utf16, "\xfe\xff"sv, ""sv, 0, "UTF-16", kFromUtf16},
};

std::string part_of(const CheckedFile& file, int64_t begin, int64_t bytes) {
  std::string part(static_cast<size_t>(std::clamp<int64_t>(bytes, 0, file.bytes() - begin)), '\0');
  file.read(begin, std::as_writable_bytes(std::span(part)));
  return part;
}

// bzip2's magic bytes up to the level could be text, so the following magic of a block or of the stream's end is
// checked too.
bool is_bzip2(std::string_view head) {
  if (head.size() < 10 || !head.starts_with("BZh") || head[3] < '1' || head[3] > '9') return false;
  return head.substr(4, 6) == "\x31\x41\x59\x26\x53\x59"sv || head.substr(4, 6) == "\x17\x72\x45\x38\x50\x90"sv;
}

bool ends_as(const CheckedFile& file, const Magic& magic) {
  const auto most = static_cast<int64_t>(magic.end.size() + magic.end_skip);
  if (most == 0) return true;
  if (file.bytes() < 2 * most) return false;
  return part_of(file, file.bytes() - most, most).starts_with(magic.end);
}

bool is_text_character(uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\f' || code == '\r';
  return code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF && code != 0xFFFE && code != 0xFFFF);
}

// Returns the whole code units of `head` as numbers.
std::vector<uint32_t> units_of(std::string_view head, size_t width, bool big_endian) {
  std::vector<uint32_t> units(head.size() / width);
  for (size_t i = 0; i < units.size() * width; ++i) {
    const size_t place = i % width;
    const size_t shift = 8 * (big_endian ? width - 1 - place : place);
    units[i / width] |= static_cast<uint32_t>(static_cast<unsigned char>(head[i])) << shift;
  }
  return units;
}

// Returns true if every unit is a character that occurs in text and every high surrogate has its low one. The last high
// surrogate may lack its low one, since `units` may be cut.
bool are_utf16(const std::vector<uint32_t>& units) {
  for (size_t i = 0; i < units.size(); ++i) {
    const bool high = units[i] >= 0xD800 && units[i] < 0xDC00;
    if (high && (i + 1 == units.size() || (units[i + 1] >= 0xDC00 && units[i + 1] < 0xE000))) {
      ++i;
    } else if (!is_text_character(units[i])) {
      return false;
    }
  }
  return true;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    if (c.code == kNotUtf8) return begins_character(text.substr(at));
    at += c.bytes;
  }
  return true;
}

// Must not take UTF-8 text with a stray NUL for UTF-16. In UTF-16, at least half of the units are below 0x100, or the
// bytes that are not NUL are not UTF-8.
bool is_utf16_without_mark(std::string_view head, bool big_endian) {
  const auto units = units_of(head, 2, big_endian);
  const auto num_latin =
      static_cast<size_t>(std::count_if(units.begin(), units.end(), [](uint32_t u) { return u < 0x100; }));
  if (num_latin == 0 || 32 * num_latin < units.size() || !are_utf16(units)) return false;
  if (2 * num_latin >= units.size()) return true;
  std::string others;
  std::copy_if(head.begin(), head.end(), std::back_inserter(others), [](char c) { return c != '\0'; });
  return !is_utf8(others);
}

bool is_utf32_without_mark(std::string_view head, bool big_endian) {
  const auto units = units_of(head, 4, big_endian);
  return std::all_of(units.begin(), units.end(), is_text_character);
}

FoundFormat wide_format(std::string_view head, int64_t file_bytes) {
  if (head.find('\0') == head.npos || file_bytes < 4 || file_bytes % 2 != 0) return {};
  for (const bool big_endian : {false, true}) {
    if (file_bytes % 4 == 0 && is_utf32_without_mark(head, big_endian)) {
      return {FileFormat::Utf32, "UTF-32",
              big_endian ? "give the output of `iconv -f UTF-32BE -t UTF-8`"
                         : "give the output of `iconv -f UTF-32LE -t UTF-8`"};
    }
  }
  for (const bool big_endian : {false, true}) {
    if (is_utf16_without_mark(head, big_endian)) {
      return {FileFormat::Utf16, "UTF-16",
              big_endian ? "give the output of `iconv -f UTF-16BE -t UTF-8`"
                         : "give the output of `iconv -f UTF-16LE -t UTF-8`"};
    }
  }
  return {};
}

FoundFormat foreign_format(const CheckedFile& file, std::string_view head) {
  for (const Magic& magic : kMagics) {
    if (head.starts_with(magic.bytes) && ends_as(file, magic)) return {magic.format, magic.name, magic.remedy};
  }
  if (is_bzip2(head)) return {FileFormat::Compressed, "bzip2", "give the output of `bzip2 -dc`"};
  return wide_format(head, file.bytes());
}

constexpr const char* kBlanks = " \t\r\n";

// Returns the first `count` whole lines that are not blank. Returns fewer if the file or the limit of bytes ends first.
std::vector<std::string> first_lines(const CheckedFile& file, size_t count) {
  std::vector<std::string> lines;
  std::string read;
  for (int64_t most = kFormatHeadBytes;; most *= 8) {
    lines.clear();
    read = part_of(file, 0, most);
    const bool all = most >= file.bytes();
    for (size_t at = 0; at < read.size() && lines.size() < count;) {
      const size_t end = read.find('\n', at);
      if (end == read.npos && !all) break;
      const std::string line = read.substr(at, end - at);
      if (line.find_first_not_of(kBlanks) != line.npos) lines.push_back(line);
      at = end == read.npos ? read.size() : end + 1;
    }
    if (lines.size() == count || all || most >= kMostOfJsonLines) return lines;
  }
}

FoundFormat json_format(const CheckedFile& file, std::string_view head, const std::string& text_field) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (head.starts_with(kMark)) head.remove_prefix(kMark.size());
  const size_t first = head.find_first_not_of(kBlanks);
  if (first == head.npos) return {};
  if (head[first] == '[') {
    return {FileFormat::JsonArray, "JSON array",
            "give its elements as a .jsonl file, one JSON object per line (`jq -c '.[]'` writes them)"};
  }
  if (head[first] != '{') return {};
  size_t num_objects = 0;
  for (const std::string& line : first_lines(file, 2)) {
    nlohmann::json json;
    if (read_json(line, json).line > 0 || !json.is_object()) break;
    const auto found = json.find(text_field);
    if (num_objects == 0 && found != json.end() && found->is_string()) return {FileFormat::JsonLines, "", ""};
    ++num_objects;
  }
  return {num_objects == 2 ? FileFormat::JsonLines : FileFormat::Text, "", ""};
}

}  // namespace

std::string FoundFormat::rule() const {
  switch (format) {
    case FileFormat::Compressed:
      return cat("is compressed (", name, "): ", remedy);
    case FileFormat::Columnar:
      return cat("is a table of columns (", name, "): ", remedy);
    default:
      return cat("is ", format == FileFormat::JsonArray ? "a " : "", name, ": ", remedy);
  }
}

bool is_named_as_lines(const std::string& path) {
  const std::string name = lower_case(path);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

FoundFormat file_format(const std::string& path, const std::string& text_field) {
  const CheckedFile file(path, Links::Followed);
  const std::string head = part_of(file, 0, kFormatHeadBytes);
  const FoundFormat foreign = foreign_format(file, head);
  if (!foreign.is_read()) return foreign;
  if (is_named_as_lines(path)) return {FileFormat::JsonLines, "", ""};
  return lower_case(path).ends_with(".json") ? json_format(file, head, text_field) : FoundFormat{};
}

}  // namespace braid::tokenize
