// Cuts text into the pieces within which tokens are formed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::tokenize {

// Walks the pieces of one text after another. Pieces are not empty, follow each other without a gap and are the whole
// text. For one thread at a time.
//
// Bytes that are not UTF-8 are cut as the character U+FFFD would be: neither letter, number nor space, each byte one
// character.
class PieceCursor {
 public:
  virtual ~PieceCursor() = default;
  // `text` must outlive the walk.
  virtual void reset(std::string_view text) = 0;
  // Returns the end of the next piece. REQUIRES: the last end is below the text's size.
  virtual size_t next() = 0;
};

// Each stage cuts the pieces of the one before by a regular expression: what it matches is a piece, what lies between
// matches is one too ("Isolated" in a tokenizer.json). No stage: the text is one piece.
struct PretokenizerSpec {
  std::vector<std::string> regexes;
};

// The patterns of families of models, by name: gpt2, llama3, qwen2. cut_by() has a scanner for each.
std::vector<std::string> pattern_names();
// The regular expression of that name, which must be one of pattern_names().
std::string pattern_regex(const std::string& name);

// Throws ConfigError (key "regex") when a stage is no regular expression, or one whose meaning differs between the
// engine of the reference tokenizers (Oniguruma) and ours (PCRE2).
std::unique_ptr<PieceCursor> cut_by(const PretokenizerSpec& spec);

// Always by the general engine, also where there is a scanner. For tests and measurements.
std::unique_ptr<PieceCursor> cut_by_general_engine(const PretokenizerSpec& spec);

}  // namespace braid::tokenize
