// The documents of a source's files, one after another from any place on: a whole text file, or a line of a .jsonl.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/line_reader.h"
#include "braid/tokenize/document_list.h"

namespace braid::tokenize {

// Recognises text by the beginning of a file.

// Returns true if `head`, the first bytes of a longer text, is UTF-8 without a NUL. A character may be cut at its end.
bool is_text_so_far(std::string_view head);

// The same for the first 8 KiB of a file. Throws IoError.
bool begins_as_text(const std::string& file);

// Returns true if every line of the file is a document.
bool has_lines(const Document& file);

enum class Side : uint8_t {
  Train,
  Validation,
  SplitEnd  // the source is this one document: its end is held out
};

struct ReadDocument {
  std::string text;
  Side side = Side::Train;
  int64_t next_file = 0, next_offset = 0;  // where the reader stands behind it
  int64_t bad_lines = 0;                   // that it has passed over so far
};

enum class BadLines : uint8_t {
  Named,   // listed as problems
  Skipped  // passed over and counted
};

struct ReaderOptions {
  std::string text_field = "text";
  double validation_fraction = 0;
  BadLines bad_lines = BadLines::Named;
  int64_t line_limit = int64_t{256} << 20;  // bytes
};

// Text files are held out by held_out(), as when a run reads them itself; of a single text file the end is. Lines are
// held out by a hash of their text, so the same text always lies on one side.
class DocumentReader {
 public:
  DocumentReader(std::vector<Document> files, ReaderOptions options);

  // The next document is the one at `offset` of file number `file`.
  void seek(int64_t file, int64_t offset);
  // Empty behind the last. Documents without text are passed over. So are bad lines, which are no JSON object with the
  // text field, if they are to be skipped; else a bad line is a ConfigError that names it and the bad lines behind it
  // by file and line, up to 20. A line above the limit always is one. Throws IoError.
  std::optional<ReadDocument> next();
  int64_t num_bad_lines() const { return num_bad_lines_; }  // of those met since the reader was made

 private:
  std::optional<ReadDocument> next_good();
  std::optional<ReadDocument> next_line();
  ReadDocument whole_file();
  bool read_line(std::string& line);
  std::optional<std::string> text_of(const std::string& line);
  int64_t line_number();
  void add_bad_line(const std::string& rule);
  [[noreturn]] void refuse_bad_lines();

  std::vector<Document> files_;
  ReaderOptions options_;
  std::vector<bool> held_out_;  // by file
  bool single_;
  size_t file_ = 0;
  int64_t offset_ = 0;
  std::optional<LineReader> lines_;  // of the file at hand, when it has lines
  int64_t line_ = 0;  // of the file at hand, from 1; -1 where it is not known, behind a seek into the file
  int64_t num_bad_lines_ = 0;
  std::vector<Problem> problems_;
};

}  // namespace braid::tokenize
