// The documents of a run read from text files into memory, split into training and validation parts.
#pragma once

#include <string>

#include "braid/data/corpus.h"
#include "braid/spec/data_spec.h"
#include "braid/tokenize/document_list.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::tokenize {

// Reads the documents of every file of `spec.paths` (order and choice: document_list.h), each ended by end-of-text: the
// same documents as prepared data would hold, held out on the same side (document_reader.h). About
// `spec.validation_fraction` of the bytes are held out, as whole documents; of a single text file, its last part is.
// The corpus' origin is one source, "text": the documents in their order, each as its length in decimal, a newline and
// its bytes, digested by XXH64. Throws ConfigError naming every path that is missing, unreadable, empty or without a
// match, or bad lines of .jsonl files, IoError when a file fails or changes while it is read.
data::Corpus read_text(const DataSpec& spec, const Tokenizer& tokenizer);

// The whole file. Throws IoError when it fails or has not the bytes it had when it was listed.
std::string content(const Document& document);

// Returns the number of tokens held out at the end of a single document: none, or at least one and never all.
int64_t held_out_end(int64_t num_tokens, double fraction);

}  // namespace braid::tokenize
