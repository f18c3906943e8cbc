// The pieces of files' documents, which are the same documents that prepared data are made of (document_reader.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "braid/tokenize/document_reader.h"
#include "braid/tokenize/piece_counts.h"

namespace braid::tokenize {

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
