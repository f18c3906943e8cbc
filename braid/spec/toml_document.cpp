// The tree out of toml++, which stops at the first syntax error.
#include "braid/spec/toml_document.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "braid/base/text.h"
#include "braid/spec/fields.h"

namespace braid {
namespace {

TomlValue value(const toml::node& node);

// With a point where it would pass for an integer.
std::string real_text(double number) {
  const std::string digits = toml_text(number);
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
}

TomlValue list(const toml::array& array) {
  TomlList entries;
  Strings written;
  for (const auto& node : array) {
    entries.push_back(value(node));
    written.push_back(entries.back().written);
  }
  return {std::move(entries), cat("[", joined(written), "]")};
}

// toml++ keeps tables sorted by key; people read problems in the order in which they wrote the file.
TomlTable in_order(const toml::table& table) {
  std::vector<std::pair<toml::source_position, const std::string*>> order;
  std::vector<std::string> names;
  names.reserve(table.size());
  for (const auto& [key, node] : table) {
    names.emplace_back(key.str());
    order.emplace_back(key.source().begin, &names.back());
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  TomlTable entries;
  for (const auto& [place, name] : order) entries.emplace_back(*name, value(*table.get(*name)));
  return entries;
}

TomlValue inline_table(const toml::table& table) {
  TomlTable entries = in_order(table);
  Strings written;
  for (const auto& [name, entry] : entries) written.push_back(name + " = " + entry.written);
  return {std::move(entries), cat("{", joined(written), "}")};
}

TomlValue value(const toml::node& node) {
  if (const auto* number = node.as_integer()) return {number->get(), toml_text(number->get())};
  if (const auto* number = node.as_floating_point()) return {number->get(), real_text(number->get())};
  if (const auto* text = node.as_string()) return {text->get(), toml_text(text->get())};
  if (const auto* array = node.as_array()) return list(*array);
  if (const auto* table = node.as_table()) return inline_table(*table);
  std::ostringstream out;
  node.visit([&](const auto& other) {
    if constexpr (toml::is_value<decltype(other)>) out << other;
  });
  return {TomlOther{}, out.str()};
}

}  // namespace

TomlDocument toml_document(const std::string& text, const std::string& origin) {
  const toml::parse_result result = toml::parse(text, origin);
  if (result) return {in_order(result.table()), {}};
  const auto& error = result.error();
  const auto place = error.source().begin;
  return {
      {},
      {{cat(origin, ":", place.line, ":", place.column), "", "is not TOML: " + std::string(error.description()), ""}}};
}

}  // namespace braid
