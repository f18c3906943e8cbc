// Reading one value with the reader of whole documents.
#include "braid/spec/override_value.h"

#include <sstream>

namespace braid::spec {
namespace {

// `text` as a TOML value; nothing when it is none, or is more than one.
std::optional<TomlValue> toml_value(const std::string& text) {
  const auto document = toml_document("value = " + text, "override");
  if (!document.problems.empty() || document.root.size() != 1) return {};
  return document.root[0].second;
}

// "[a.txt, b.txt]" with its words in quotes.
std::string quoted_list(const std::string& text) {
  Strings words;
  std::istringstream inside(text.substr(1, text.size() - 2));
  for (std::string word; std::getline(inside, word, ',');) {
    if (!trimmed(word).empty()) words.push_back(trimmed(word));
  }
  return toml_text(words);
}

}  // namespace

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::optional<TomlValue> override_value(const Field& field, const std::string& text) {
  auto value = toml_value(text);
  const bool quoted = text.find_first_of("\"'") != std::string::npos;
  if (quoted) return value;
  if (std::holds_alternative<WordOrNumbers>(field.rule) && value && value->as<TomlList>()) return value;
  const bool text_field =
      std::holds_alternative<Member<std::string>>(field.slot) || std::holds_alternative<Choice>(field.slot);
  if (text_field) return toml_value(toml_text(text));
  const bool list = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (std::holds_alternative<Member<Strings>>(field.slot) && list) return toml_value(quoted_list(text));
  return value ? value : toml_value(toml_text(text));
}

}  // namespace braid::spec
