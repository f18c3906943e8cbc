// Counts of the pieces in texts, from which merges are trained.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/tokenize/document_reader.h"
#include "braid/tokenize/pretokenizer.h"

namespace braid::tokenize {

class PieceCounts {
 public:
  explicit PieceCounts(const PretokenizerSpec& spec) : PieceCounts(cut_by(spec)) {}
  // REQUIRES: `cursor` is not null.
  explicit PieceCounts(std::unique_ptr<PieceCursor> cursor) : cursor_(std::move(cursor)) {}

  // Adds one text. Pieces do not reach from one text into another.
  void add(std::string_view text);
  // Adds a whole file as one text. Memory is one block (64 MiB), whatever the size of the file. A run of more than 4
  // KiB of white space across the border of a block may be cut there. Calls `progress` with the bytes read so far.
  // Throws IoError.
  void add_file(const std::string& path, const std::function<void(int64_t)>& progress = {});

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view piece) const { return std::hash<std::string_view>()(piece); }
  };
  using Table = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;
  const Table& table() const { return table_; }

 private:
  // Counts the pieces that end at least `margin` bytes before the end of `text`. Returns where the first uncounted
  // piece begins.
  size_t add_all_but(size_t margin, std::string_view text);

  std::unique_ptr<PieceCursor> cursor_;
  Table table_;
};

// The piece counts of files' documents. They are the same documents as in prepared data (document_reader.h).
struct DocumentPieces {
  PieceCounts counts;
  int64_t num_documents = 0, num_bad_lines = 0;  // num_bad_lines: lines of .jsonl files that were passed over
};

// Counts the pieces that `cursor` cuts from every document of `files`, on both sides. No piece reaches from one
// document into another. Calls `progress` from time to time with the number of bytes read. Memory: a block of a text
// file (PieceCounts::add_file), or the longest line of a .jsonl file. Unless bad lines are skipped, throws ConfigError
// naming them, before any text file is read. Throws IoError.
DocumentPieces document_pieces(const std::vector<Document>& files, std::unique_ptr<PieceCursor> cursor,
                               const ReaderOptions& options, const std::function<void(int64_t)>& progress);

}  // namespace braid::tokenize
