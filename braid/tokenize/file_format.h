// Detects the format of an input file by its first bytes: text, one JSON object per line, or a format that is refused.
#pragma once

#include <cstdint>
#include <string>

namespace braid::tokenize {

enum class FileFormat : uint8_t {
  Text,
  JsonLines,   // each line is a JSON object: a document
  JsonArray,   // not read
  Compressed,  // not read; by magic bytes: gzip, zstd, xz, bzip2, lz4, zip, 7z
  Columnar,    // not read; by magic bytes: Parquet, Arrow, Feather, Avro, ORC
  Utf16,       // not read; by its byte order mark or the positions of its NULs
  Utf32,       // not read; detected as UTF-16 is
};

struct FoundFormat {
  FileFormat format = FileFormat::Text;
  std::string name;    // "gzip", "UTF-16"; empty for Text and JsonLines
  std::string remedy;  // advice on how to give the file's content; empty for Text and JsonLines

  bool is_read() const { return name.empty(); }
  std::string rule() const;  // returns "is compressed (gzip): give the output of `gzip -dc`"
};

// Returns true if the name ends in .jsonl or .ndjson.
bool is_named_as_lines(const std::string& path);

// Reads the beginning of the file: 8 KiB, and for names ending in .json up to the first two lines. Files named .jsonl
// and .ndjson are JSON lines. A .json is JSON lines if its first line is a JSON object with a string under
// `text_field`, or if its first two lines are JSON objects. It is a JSON array if it begins with `[`. Throws IoError.
FoundFormat file_format(const std::string& path, const std::string& text_field);

}  // namespace braid::tokenize
