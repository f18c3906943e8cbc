// The text rules of BERT: its normalizer, and how normalized text is cut into words. Source: huggingface/tokenizers
// 0.23, normalizers/bert and pre_tokenizers/bert, after google-research/bert, tokenization.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "braid/tokenize/pretokenizer.h"

namespace braid::tokenize {

// The settings of the normalizer. The steps are applied in this order.
struct BertRules {
  bool clean_text = true;            // control characters, NUL and U+FFFD are removed; white space becomes spaces
  bool handle_chinese_chars = true;  // every CJK ideograph gets a space on both sides
  bool strip_accents = true;         // text is converted to normal form D and loses its nonspacing marks
  bool lowercase = true;             // character by character, without regard to context

  bool operator==(const BertRules&) const = default;
};

// Returns the normalized text, always UTF-8. Each byte of `text` that is not UTF-8 counts as U+FFFD. Thread-safe.
std::string bert_form(std::string_view text, const BertRules& rules);

// A cursor over the words of a normalized text: the runs between white space, in which every punctuation character is
// a word of its own.
class BertWords {
 public:
  // REQUIRES: `form` is UTF-8 and outlives this.
  explicit BertWords(std::string_view form) : form_(form) {}
  // Returns the next word, or an empty string at the end.
  std::string_view next();

 private:
  std::string_view form_;
  size_t at_ = 0;
};

// Returns true for the white space that BertPieces joins to runs.
inline bool is_bert_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// A cursor that cuts text which is not normalized. The words of the whole text are those of its pieces, each normalized
// by itself. A piece is a run of ASCII white space, one character that is never part of a longer word, or a run of
// other characters.
class BertPieces final : public PieceCursor {
 public:
  explicit BertPieces(const BertRules& rules);
  void reset(std::string_view text) override {
    text_ = text;
    at_ = 0;
  }
  size_t next() override;
  // Passes over a run of ASCII white space. Returns the begin of the next piece, or the text's size.
  size_t skip_blanks() {
    while (at_ < text_.size() && is_bert_blank(text_[at_])) ++at_;
    return at_;
  }

 private:
  bool stands_alone(uint32_t code) const { return (flags_of_[code] & alone_) != 0; }

  const uint8_t* flags_of_;
  uint8_t alone_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace braid::tokenize
