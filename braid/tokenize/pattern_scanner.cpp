// The scanners of known patterns. They try the alternatives of a pattern in its order.
#include "braid/tokenize/pattern_scanner.h"

#include <array>

#include "braid/tokenize/unicode_classes.h"

namespace braid::tokenize {
namespace {

// A character's size and class; 0 bytes past the end of the text.
struct Seen {
  uint32_t bytes = 0;
  CharClass kind = CharClass::Other;
};

enum class Letters { AsWritten, AnyCase };

class Scanner : public PieceCursor {
 public:
  void reset(std::string_view text) final {
    text_ = text;
    at_ = 0;
  }

 protected:
  Seen see(size_t at) const {
    if (at >= text_.size()) return {};
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return {1, classes_[byte]};
    const Utf8Char c = utf8_at(text_, at);
    return {c.bytes, class_of(classes_, c.code)};
  }

  // Returns the end of the run of `kind` at `at`; `at` if the run is empty.
  size_t run(size_t at, CharClass kind) const {
    for (Seen seen = see(at); seen.bytes > 0 && seen.kind == kind; seen = see(at)) at += seen.bytes;
    return at;
  }

  // Returns the end of the match of '(s|t|re|ve|m|ll|d) at `at`, or 0. AnyCase also matches U+017F as s (Unicode case
  // folding).
  size_t contraction(size_t at, Letters letters) const {
    if (text_[at] != '\'') return 0;
    const auto letter = [&](size_t i) -> char {
      if (i >= text_.size()) return 0;
      const char c = text_[i];
      return letters == Letters::AnyCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const char first = letter(at + 1), second = letter(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
    if (first == 'l' && second == 'l') return at + 3;
    if (letters == Letters::AnyCase && text_.substr(at + 1, 2) == "\xC5\xBF") return at + 3;
    return 0;
  }

  // Positions in a run of white space.
  struct Blank {
    size_t end = 0;          // end of the run
    size_t last = 0;         // begin of its last character
    size_t newline_end = 0;  // end of its last \r or \n; 0 if it has none
  };
  Blank blank(size_t at) const {
    Blank found;
    for (Seen seen = see(at); seen.bytes > 0; seen = see(at)) {
      if (seen.kind != CharClass::Space && seen.kind != CharClass::Newline) break;
      found.last = at;
      at += seen.bytes;
      if (seen.kind == CharClass::Newline) found.newline_end = at;
    }
    found.end = at;
    return found;
  }

  // Returns the end of the match of \s+(?!\S)|\s+. At the end of the text the match is the whole run. Elsewhere it
  // leaves out the last character, which may belong to the next word, unless the run has only that one.
  size_t blank_end(const Blank& found) const {
    return found.end == text_.size() || found.last == at_ ? found.end : found.last;
  }

  std::string_view text_;
  size_t at_ = 0;
  const CharClass* classes_ = char_classes();
};

class Gpt2Scanner final : public Scanner {
 public:
  size_t next() override { return at_ = end(); }

 private:
  size_t end() const {
    if (const size_t end = contraction(at_, Letters::AsWritten)) return end;
    Seen seen = see(at_);
    size_t begin = at_;
    if (text_[at_] == ' ') {  // the optional space of " ?" before a word
      const Seen behind = see(at_ + 1);
      if (behind.bytes > 0 && behind.kind != CharClass::Space && behind.kind != CharClass::Newline) {
        begin = at_ + 1;
        seen = behind;
      }
    }
    if (seen.kind != CharClass::Space && seen.kind != CharClass::Newline) return run(begin + seen.bytes, seen.kind);
    return blank_end(blank(at_));
  }
};

template <int kMaxDigits>
class Llama3Scanner final : public Scanner {
 public:
  size_t next() override { return at_ = end(); }

 private:
  size_t end() const {
    if (const size_t end = contraction(at_, Letters::AnyCase)) return end;
    const Seen seen = see(at_);
    if (seen.kind == CharClass::Letter) return run(at_ + seen.bytes, CharClass::Letter);
    if (seen.kind == CharClass::Number) return digits(at_ + seen.bytes);
    const Seen behind = see(at_ + seen.bytes);
    if (seen.kind != CharClass::Newline && behind.bytes > 0 && behind.kind == CharClass::Letter) {
      return run(at_ + seen.bytes + behind.bytes, CharClass::Letter);
    }
    if (seen.kind == CharClass::Other) return symbols(at_ + seen.bytes);
    if (text_[at_] == ' ' && behind.bytes > 0 && behind.kind == CharClass::Other) {
      return symbols(at_ + 1 + behind.bytes);
    }
    const Blank found = blank(at_);
    return found.newline_end > 0 ? found.newline_end : blank_end(found);
  }

  size_t digits(size_t at) const {
    for (int i = 1; i < kMaxDigits; ++i) {
      const Seen seen = see(at);
      if (seen.bytes == 0 || seen.kind != CharClass::Number) break;
      at += seen.bytes;
    }
    return at;
  }

  size_t symbols(size_t at) const { return run(run(at, CharClass::Other), CharClass::Newline); }
};

}  // namespace

std::unique_ptr<PieceCursor> pattern_scanner(std::string_view regex) {
  if (regex == kGpt2Regex) return std::make_unique<Gpt2Scanner>();
  if (regex == kLlama3Regex) return std::make_unique<Llama3Scanner<3>>();
  if (regex == kQwen2Regex) return std::make_unique<Llama3Scanner<1>>();
  return nullptr;
}

}  // namespace braid::tokenize
