// The manifest of prepared data: JSON that lists every file with its digest and ends with its own digest.
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

// The documents of one section of a source: those for training and those held out. A side without tokens has no file.
struct PreparedPart {
  std::string train_name, validation_name;
  TokenFileInfo train, validation;

  bool operator==(const PreparedPart&) const = default;
};

// One input, or all inputs together if they have no weights.
struct PreparedSource {
  std::vector<std::string> inputs;  // inputs as given, with bytes that are not UTF-8 replaced by U+FFFD
  double weight = 0;                // weight of its samples, relative to the other sources; 0: by size
  uint64_t listing = 0;             // digest of the names and sizes of the files below the inputs
  int64_t num_files = 0, text_bytes = 0;
  std::vector<PreparedPart> parts;
  int64_t bad_lines = 0;      // skipped lines of .jsonl files
  int64_t num_documents = 0;  // documents of all parts; a text whose end is held out lies in two files but counts once

  bool operator==(const PreparedSource&) const = default;
};

struct PreparedManifest {
  TokenizerMark tokenizer;
  double validation_fraction = 0;
  int64_t shard_tokens = 0;
  std::vector<std::string> include;
  std::string text_field;
  std::vector<PreparedSource> sources;

  int64_t num_documents() const;  // number of documents of all sources

  bool operator==(const PreparedManifest&) const = default;
};

// The place where an interrupted preparation resumes.
struct PrepareCursor {
  int64_t source = 0;
  int64_t file = 0;    // index among the source's files
  int64_t offset = 0;  // offset in the file of the next line or document

  bool operator==(const PrepareCursor&) const = default;
};

struct PrepareProgress {
  PreparedManifest manifest;  // lists the parts that are finished
  PrepareCursor cursor;
};

std::string manifest_json(const PreparedManifest& manifest);
std::string progress_json(const PrepareProgress& progress);
// Both throw IoError naming `path` if the text is damaged or has another format. They reject file names that leave the
// folder.
PreparedManifest parse_prepared_manifest(const std::string& path, const std::string& text);
PrepareProgress parse_prepare_progress(const std::string& path, const std::string& text);

// Returns true if `folder`/manifest.json exists and is a manifest of prepared data.
bool is_prepared(const std::string& folder);
PreparedManifest read_prepared_manifest(const std::string& folder);

// Replaces `path` by `text` atomically and durably, through `path`.tmp.
void replace_file(FileSystem& files, const std::string& path, const std::string& text);

}  // namespace braid::data
