// Chains of pre-tokenizer stages, and the choice between scanner and general engine for each stage.
#include "braid/tokenize/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <memory>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/tokenize/pattern_scanner.h"
#include "braid/tokenize/regex_translation.h"
#include "braid/tokenize/unicode_classes.h"

namespace braid::tokenize {
namespace {

// Replaces a byte that is not UTF-8: it is one byte long and neither letter, number nor space.
constexpr char kStandIn = '\x01';

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
using Code = std::unique_ptr<pcre2_code, FreeCode>;
using Match = std::unique_ptr<pcre2_match_data, FreeMatch>;

std::string message_of(int code) {
  unsigned char text[200];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

Code compile(const std::string& regex) {
  const RegexTranslation translation = translate_regex(regex);
  if (!translation.refused.empty()) throw ConfigError({{"regex", regex, translation.refused, ""}});
  int error = 0;
  size_t offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translation.regex.data()), translation.regex.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, nullptr));
  if (!code) throw ConfigError({{"regex", regex, cat("is not a regular expression: ", message_of(error)), ""}});
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without a JIT, pcre2_match() interprets
  return code;
}

class RegexCursor final : public PieceCursor {
 public:
  explicit RegexCursor(const std::string& regex)
      : regex_(regex), code_(compile(regex)), match_(pcre2_match_data_create(1, nullptr)) {
    check(match_ != nullptr, "memory for a match");
  }

  void reset(std::string_view text) override {
    text_ = with_stand_ins(text);
    piece_ = found_begin_ = found_end_ = search_ = 0;
    has_found_ = false;
  }

  size_t next() override {
    while (true) {
      if (!has_found_) find();
      const size_t end = piece_ < found_begin_ ? found_begin_ : found_end_;
      if (end == found_end_) has_found_ = false;
      if (end > piece_) return piece_ = end;
    }
  }

 private:
  // Returns the text with kStandIn for each byte that is not UTF-8; `text` itself if all of it is UTF-8.
  std::string_view with_stand_ins(std::string_view text) {
    masked_.clear();
    for (size_t at = 0; at < text.size();) {
      if (static_cast<unsigned char>(text[at]) < 0x80) {
        ++at;
        continue;
      }
      const Utf8Char c = utf8_at(text, at);
      if (c.code == kNotUtf8) {
        if (masked_.empty()) masked_ = text;
        masked_[at] = kStandIn;
      }
      at += c.bytes;
    }
    return masked_.empty() ? text : std::string_view(masked_);
  }

  // Finds the next match at or after search_. If there is none, the match is empty at the end of the text.
  void find() {
    has_found_ = true;
    found_begin_ = found_end_ = text_.size();
    if (search_ > text_.size()) return;
    const auto subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
    int result = pcre2_match(code_.get(), subject, text_.size(), search_, PCRE2_NO_UTF_CHECK, match_.get(), nullptr);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = pcre2_match(code_.get(), subject, text_.size(), search_, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match_.get(),
                           nullptr);
    }
    if (result == PCRE2_ERROR_NOMATCH) {
      search_ = text_.size() + 1;
      return;
    }
    if (result < 0) throw RunError(cat("the pre-tokenizer's expression ", regex_, " failed: ", message_of(result)));
    const size_t* place = pcre2_get_ovector_pointer(match_.get());
    // A lookbehind with an empty match can give an end before its begin (\K is refused). The cursor never goes
    // backwards.
    found_begin_ = std::max(place[0], piece_);
    found_end_ = std::max(place[1], found_begin_);
    search_ = found_end_ > found_begin_ ? found_end_ : behind(found_end_);
  }

  size_t behind(size_t at) const { return at < text_.size() ? at + utf8_at(text_, at).bytes : at + 1; }

  std::string regex_;
  Code code_;
  Match match_;
  std::string_view text_;
  std::string masked_;
  size_t piece_ = 0;                        // begin of the current piece
  size_t found_begin_ = 0, found_end_ = 0;  // current match
  size_t search_ = 0;                       // where to search for the next match
  bool has_found_ = false;
};

// Throws ConfigError (key "regex") for an expression that does not compile or that translate_regex() refuses. A cursor
// throws RunError when the expression needs more backtracking than the engine allows.
std::unique_ptr<PieceCursor> regex_cursor(const std::string& regex) { return std::make_unique<RegexCursor>(regex); }

class WholeText final : public PieceCursor {
 public:
  void reset(std::string_view text) override { size_ = text.size(); }
  size_t next() override { return size_; }

 private:
  size_t size_ = 0;
};

// A cursor that cuts the pieces of the first cursor with the second.
class Chain final : public PieceCursor {
 public:
  Chain(std::unique_ptr<PieceCursor> first, std::unique_ptr<PieceCursor> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  void reset(std::string_view text) override {
    text_ = text;
    first_->reset(text);
    begin_ = end_ = at_ = 0;
  }

  size_t next() override {
    if (at_ == end_) {
      begin_ = end_;
      end_ = first_->next();
      second_->reset(text_.substr(begin_, end_ - begin_));
    }
    return at_ = begin_ + second_->next();
  }

 private:
  std::unique_ptr<PieceCursor> first_, second_;
  std::string_view text_;
  size_t begin_ = 0, end_ = 0;  // current piece of the first cursor
  size_t at_ = 0;
};

struct NamedPattern {
  const char* name;
  std::string_view regex;
};
constexpr NamedPattern kPatterns[] = {{"gpt2", kGpt2Regex}, {"llama3", kLlama3Regex}, {"qwen2", kQwen2Regex}};

template <class MakeStage>
std::unique_ptr<PieceCursor> chain(const PretokenizerSpec& spec, const MakeStage& make_stage) {
  std::unique_ptr<PieceCursor> all;
  for (const std::string& regex : spec.regexes) {
    auto stage = make_stage(regex);
    all = all ? std::make_unique<Chain>(std::move(all), std::move(stage)) : std::move(stage);
  }
  return all ? std::move(all) : std::make_unique<WholeText>();
}

}  // namespace

std::vector<std::string> pattern_names() {
  std::vector<std::string> names;
  for (const auto& pattern : kPatterns) names.emplace_back(pattern.name);
  return names;
}

std::string pattern_regex(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kPatterns), std::end(kPatterns),
                                         [&](const NamedPattern& pattern) { return pattern.name == name; });
  check(found != std::end(kPatterns), "a pattern of that name");
  return std::string(found->regex);
}

std::unique_ptr<PieceCursor> cut_by(const PretokenizerSpec& spec) {
  return chain(spec, [](const std::string& regex) {
    auto scanner = pattern_scanner(regex);
    return scanner ? std::move(scanner) : regex_cursor(regex);
  });
}

std::unique_ptr<PieceCursor> cut_by_general_engine(const PretokenizerSpec& spec) { return chain(spec, regex_cursor); }

}  // namespace braid::tokenize
