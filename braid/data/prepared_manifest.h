// The manifest of prepared data: JSON that names every file with its digest and ends with its own digest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/data/token_file_writer.h"

namespace braid::data {

// The tokenizer of prepared data. Two folders can be combined if identity, vocab and end_of_text are equal.
struct TokenizerMark {
  std::string name;  // "bytes", or a path inside the folder of prepared data
  uint64_t identity = 0;
  int64_t vocab = 0;
  int64_t end_of_text = 0;

  bool operator==(const TokenizerMark&) const = default;
};

// The documents of one stretch of a source: those to train on and those held out. Either may have no token and then
// has no file.
struct PreparedPart {
  std::string train_name, validation_name;
  TokenFileInfo train, validation;

  bool operator==(const PreparedPart&) const = default;
};

// One input, or all of them together when they have no weights.
struct PreparedSource {
  std::vector<std::string> inputs;  // as given, but for bytes that are no UTF-8, which are U+FFFD
  double weight = 0;                // share of the samples against the other sources'; 0: by size
  uint64_t listing = 0;             // digest of the names and sizes of the files below the inputs
  int64_t num_files = 0, text_bytes = 0;
  std::vector<PreparedPart> parts;
  int64_t bad_lines = 0;      // of .jsonl files, skipped
  int64_t num_documents = 0;  // of the parts; a text whose end is held out lies in two files and is one

  bool operator==(const PreparedSource&) const = default;
};

struct PreparedManifest {
  TokenizerMark tokenizer;
  double validation_fraction = 0;
  int64_t shard_tokens = 0;
  std::vector<std::string> include;
  std::string text_field;
  std::vector<PreparedSource> sources;

  int64_t num_documents() const;  // of all sources

  bool operator==(const PreparedManifest&) const = default;
};

// The place where an unfinished preparation resumes.
struct PrepareCursor {
  int64_t source = 0;
  int64_t file = 0;    // of the source's files
  int64_t offset = 0;  // in it, of the next line or document

  bool operator==(const PrepareCursor&) const = default;
};

struct PrepareProgress {
  PreparedManifest manifest;  // the parts that are finished
  PrepareCursor cursor;
};

std::string manifest_json(const PreparedManifest& manifest);
std::string progress_json(const PrepareProgress& progress);
// Throw IoError naming `path` when the text is damaged or not what they read. File names in it cannot leave the folder.
PreparedManifest parse_prepared_manifest(const std::string& path, const std::string& text);
PrepareProgress parse_prepare_progress(const std::string& path, const std::string& text);

// `folder`/manifest.json; whether there is one that says it is of prepared data.
bool is_prepared(const std::string& folder);
PreparedManifest read_prepared_manifest(const std::string& folder);

// Replaces `path` by `text` at once and durably, through `path`.tmp.
void replace_file(FileSystem& files, const std::string& path, const std::string& text);

}  // namespace braid::data
