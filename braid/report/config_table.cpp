// The written values, beside the defaults of the field list.
#include "braid/report/config_table.h"

#include "braid/base/text.h"
#include "braid/report/markup.h"
#include "braid/spec/fields.h"
#include "braid/spec/toml_document.h"

namespace braid::report {
namespace {

std::string row(const std::string& section, const std::string& leaf, const spec::TomlValue& value) {
  const spec::Field* field = spec::find_field(section + "." + leaf);
  const std::string usual = field == nullptr ? "" : spec::value_text(*field, RunSpec());
  const bool changed = field != nullptr && usual != value.written;
  std::string hint;
  if (field != nullptr)
    hint = cat(" title=\"", escaped(field->meaning), changed ? " Default: " + escaped(usual) : "", "\"");
  return cat("<tr", changed ? " class=\"changed\"" : "", hint, "><th>", escaped(leaf), "</th><td>",
             escaped(value.written), "</td></tr>\n");
}

}  // namespace

std::string config_tables(const std::string& toml) {
  const spec::TomlDocument document = spec::toml_document(toml, "config.toml");
  if (!document.problems.empty()) return cat("<pre>", escaped(toml), "</pre>\n");
  std::string all = "<div class=\"tables\">\n";
  for (const auto& [section, content] : document.root) {
    const spec::TomlTable* table = content.as<spec::TomlTable>();
    if (table == nullptr) continue;
    all += cat("<table><caption>", escaped(section), "</caption>\n");
    for (const auto& [leaf, value] : *table) all += row(section, leaf, value);
    all += "</table>\n";
  }
  return all + "</div>\n";
}

}  // namespace braid::report
