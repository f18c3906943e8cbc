// Cuts text into the pieces within which tokens are formed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::tokenize {

// A cursor over the pieces of one text after another. Pieces are not empty, follow each other without a gap and cover
// the whole text. Not thread-safe.
//
// Bytes that are not UTF-8 are cut as the character U+FFFD would be: neither letter, number nor space, with each byte
// as one character.
class PieceCursor {
 public:
  virtual ~PieceCursor() = default;
  // Starts at the beginning of `text`, which must outlive the walk.
  virtual void reset(std::string_view text) = 0;
  // Returns the end of the next piece. REQUIRES: the last end is below the text's size.
  virtual size_t next() = 0;
};

// The stages of a pre-tokenizer. Each stage cuts the pieces of the stage before by a regular expression: both the
// matches and the text between them are pieces ("Isolated" in a tokenizer.json). Without stages, the text is one piece.
struct PretokenizerSpec {
  std::vector<std::string> regexes;
};

// Returns the names of the patterns of families of models: gpt2, llama3, qwen2. cut_by() has a scanner for each.
std::vector<std::string> pattern_names();
// Returns the regular expression of that name. REQUIRES: `name` is one of pattern_names().
std::string pattern_regex(const std::string& name);

// Makes a cursor. Throws ConfigError (key "regex") if a stage is not a regular expression, or if its meaning differs
// between the engine of the reference tokenizers (Oniguruma) and ours (PCRE2).
std::unique_ptr<PieceCursor> cut_by(const PretokenizerSpec& spec);

// Makes a cursor that always uses the general engine, even if there is a scanner. For tests and measurements.
std::unique_ptr<PieceCursor> cut_by_general_engine(const PretokenizerSpec& spec);

}  // namespace braid::tokenize
