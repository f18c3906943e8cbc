// Quotes words for a shell.
#include "braid/cli/resume_command.h"

#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/spec/fields.h"

namespace braid::cli {
namespace {

bool is_plain(const std::string& word) {
  constexpr const char* kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";
  return !word.empty() && word.find_first_not_of(kPlain) == word.npos;
}

bool is_shown_as_it_is(std::string_view text) { return printable(text, text.size()) == text; }

// Returns the byte as "\033". There are always three digits, so that a digit after them is not read as one of them.
std::string octal(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  const auto digit = [&](int shift) { return static_cast<char>('0' + (value >> shift & 7)); };
  return {'\\', digit(6), digit(3), digit(0)};
}

// Returns the word in $'...', for words with characters that cannot be shown.
std::string escaped_word(const std::string& word) {
  std::string quoted = "$'";
  for (size_t at = 0; at < word.size();) {
    const std::string character = word.substr(at, utf8_at(word, at).bytes);
    at += character.size();
    if (is_shown_as_it_is(character)) {
      quoted += (character == "'" || character == "\\" ? "\\" : "") + character;
    } else {
      for (const char byte : character) quoted += octal(byte);
    }
  }
  return quoted + "'";
}

std::string quoted_word(const std::string& word) {
  if (is_plain(word)) return word;
  if (!is_shown_as_it_is(word)) return escaped_word(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string key_of(const std::string& word) {
  const std::string key = word.substr(0, word.find('='));
  const auto first = key.find_first_not_of(" \t"), last = key.find_last_not_of(" \t");
  return first == key.npos ? "" : key.substr(first, last - first + 1);
}

}  // namespace

std::string for_the_shell(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(quoted_word(word));
  return joined(quoted, " ");
}

std::string resume_command(const std::string& program, const std::string& file,
                           const std::vector<std::string>& overrides, const std::string& checkpoint) {
  std::vector<std::string> words{program, "train", file};
  for (const std::string& word : overrides) {
    const std::string key = key_of(word);
    if (key != "train.resume" && key != "train.overwrite") words.push_back(word);
  }
  words.push_back("train.resume=" + (is_plain(checkpoint) ? checkpoint : spec::toml_text(checkpoint)));
  return for_the_shell(words);
}

}  // namespace braid::cli
