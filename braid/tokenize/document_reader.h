// Reads the documents of a source's files one after another, starting anywhere. A document is a whole text file or one
// line of a .jsonl.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/line_reader.h"
#include "braid/tokenize/document_list.h"

namespace braid::tokenize {

// Returns true if `head`, the first bytes of a text, is UTF-8 without a NUL. The last character may be cut off.
bool is_text_so_far(std::string_view head);

// Returns is_text_so_far() of the first 8 KiB of a file. Throws IoError.
bool begins_as_text(const std::string& file);

// Returns true if every line of the file is a document.
bool has_lines(const Document& file);

enum class Side : uint8_t {
  Train,
  Validation,
  SplitEnd  // the source is this one document, and its end is held out
};

struct ReadDocument {
  std::string text;
  Side side = Side::Train;
  int64_t next_file = 0, next_offset = 0;  // position of the reader after this document
  int64_t bad_lines = 0;                   // number of bad lines passed over so far
};

enum class BadLines : uint8_t {
  Named,   // bad lines are listed as problems
  Skipped  // bad lines are passed over and counted
};

struct ReaderOptions {
  std::string text_field = "text";
  double validation_fraction = 0;
  BadLines bad_lines = BadLines::Named;
  int64_t line_limit = int64_t{256} << 20;  // limit in bytes
};

// A reader of documents that assigns each to a side. Text files are held out by held_out(), as when a run reads them
// itself; if there is a single text file, its end is held out. Lines are held out by a hash of their text: the same
// text is always on the same side.
class DocumentReader {
 public:
  DocumentReader(std::vector<Document> files, ReaderOptions options);

  // Makes the document at `offset` of file number `file` the next one.
  void seek(int64_t file, int64_t offset);
  // Returns the next document, or nullopt after the last. Documents without text are passed over. A bad line is one
  // that is not a JSON object with the text field. Bad lines are passed over if they are to be skipped; otherwise the
  // first throws ConfigError, which names it and later bad lines by file and line, up to 20. A line above the limit
  // always throws ConfigError. Throws IoError.
  std::optional<ReadDocument> next();
  int64_t num_bad_lines() const { return num_bad_lines_; }  // bad lines found since the reader was made

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
  std::optional<LineReader> lines_;  // lines of the current file, if it has lines
  int64_t line_ = 0;                 // line in the current file, from 1; -1 if unknown after a seek into the file
  int64_t num_bad_lines_ = 0;
  std::vector<Problem> problems_;
};

}  // namespace braid::tokenize
