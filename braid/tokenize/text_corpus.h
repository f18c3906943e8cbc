// Reads the documents of a run from text files into memory, split into training and validation parts.
#pragma once

#include <string>

#include "braid/data/corpus.h"
#include "braid/spec/data_spec.h"
#include "braid/tokenize/document_list.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::tokenize {

// Reads the documents of every file of `spec.paths`, each ended by end-of-text. document_list.h describes which files
// are documents, and their order. The documents are the same as in prepared data and are held out on the same side
// (document_reader.h). About `spec.validation_fraction` of the bytes are held out as whole documents; of a single text
// file, the last part is. The origin of the corpus is one source, "text": the documents in their order, each as its
// length in decimal, a newline and its bytes, digested by XXH64. Throws ConfigError naming every path that is missing,
// unreadable, empty or without a match, or naming bad lines of .jsonl files. Throws IoError if a file fails or changes
// while it is read.
data::Corpus read_text(const DataSpec& spec, const Tokenizer& tokenizer);

// Returns the whole file. Throws IoError if it cannot be read or its size has changed since it was listed.
std::string content(const Document& document);

// Returns the number of tokens held out at the end of a single document: none, or at least one and never all.
int64_t held_out_end(int64_t num_tokens, double fraction);

}  // namespace braid::tokenize
