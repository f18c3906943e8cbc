// Counts of the pieces in files, from which merges are trained.
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
  explicit PieceCounts(const PretokenizerSpec& spec) : cursor_(cut_by(spec)) {}

  // A text of its own: no piece reaches into another.
  void add(std::string_view text);
  // A whole file as one text, in memory of one block (64 MiB) whatever its size; a run of more than 4 KiB of white
  // space over a block's border may be cut there. Calls `progress` with the bytes read so far. Throws IoError.
  void add_file(const std::string& path, const std::function<void(int64_t)>& progress = {});

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view piece) const { return std::hash<std::string_view>()(piece); }
  };
  using Table = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;
  const Table& table() const { return table_; }

 private:
  // Counts the pieces that end at least `margin` bytes before the end of `text`; returns where the first other begins.
  size_t add_all_but(size_t margin, std::string_view text);

  std::unique_ptr<PieceCursor> cursor_;
  Table table_;
};

// The pieces of files' documents, which are the same documents that prepared data are made of (document_reader.h).
struct DocumentPieces {
  PieceCounts counts;
  int64_t num_documents = 0, num_bad_lines = 0;  // of .jsonl files, passed over
};

// Counts the pieces of every document of `files`, whichever side it would be held out on. No piece reaches from one
// document into another. `progress` hears now and then how many bytes were read. Memory: a block of a text file
// (PieceCounts::add_file), or the longest line of a .jsonl file. Throws ConfigError naming bad lines unless they are
// skipped, before any text file is read; IoError.
DocumentPieces document_pieces(const std::vector<Document>& files, const PretokenizerSpec& spec,
                               const ReaderOptions& options, const std::function<void(int64_t)>& progress);

}  // namespace braid::tokenize
