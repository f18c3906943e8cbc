// The translation of a regular expression, in one pass over it.
#include "braid/tokenize/regex_translation.h"

#include "braid/base/text.h"

namespace braid::tokenize {
namespace {

// The characters that \s matches, as members of a set.
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

class Translator {
 public:
  explicit Translator(std::string_view regex) : regex_(regex) {}

  RegexTranslation translate() {
    while (at_ < regex_.size() && out_.refused.empty()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = regex_[at_];
    if (c == '\\') {
      escape();
    } else if (in_set_) {
      set_member(c);
    } else if (c == '[') {
      open_set();
    } else if (regex_.substr(at_).starts_with("(?")) {
      group();
    } else {
      copy(1);
    }
  }

  void escape() {
    const char name = at_ + 1 < regex_.size() ? regex_[at_ + 1] : '\0';
    const std::string_view two = regex_.substr(at_, 2);
    if (name == 's') {
      out_.regex += in_set_ ? std::string(kSpaces) : cat("[", kSpaces, "]");
      at_ += 2;
    } else if (name == 'S' && !in_set_) {
      out_.regex += cat("[^", kSpaces, "]");
      at_ += 2;
    } else if (std::string_view("hHwWbBdDSvkgQEKGyYORXNCcux").find(name) != std::string_view::npos || name == '\0') {
      refuse(two, "is not supported here: engines read it differently");
    } else {
      copy(2);
    }
  }

  void open_set() {
    in_set_ = true;
    copy(1);
    if (at_ < regex_.size() && regex_[at_] == '^') copy(1);
    if (at_ < regex_.size() && regex_[at_] == ']') refuse("[]", "is read differently by engines; write \\]");
  }

  void set_member(char c) {
    if (c == '[') return refuse("[", "within a set is read differently by engines; write \\[");
    if (regex_.substr(at_).starts_with("&&")) return refuse("&&", "within a set is not supported");
    if (c == ']') in_set_ = false;
    copy(1);
  }

  void group() {
    constexpr std::string_view kOpenings[] = {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    for (const std::string_view opening : kOpenings) {
      if (regex_.substr(at_).starts_with(opening)) return copy(opening.size());
    }
    refuse(regex_.substr(at_, 3), "is not supported; only (?: (?i: (?= (?! (?<= (?<! (?> are");
  }

  void copy(size_t bytes) {
    out_.regex += regex_.substr(at_, bytes);
    at_ += bytes;
  }

  void refuse(std::string_view what, std::string_view why) { out_.refused = cat(what, " ", why); }

  std::string_view regex_;
  size_t at_ = 0;
  bool in_set_ = false;
  RegexTranslation out_;
};

}  // namespace

RegexTranslation translate_regex(std::string_view regex) { return Translator(regex).translate(); }

}  // namespace braid::tokenize
