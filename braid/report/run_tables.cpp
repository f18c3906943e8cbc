// One row for each way.
#include "braid/report/run_tables.h"

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

namespace {

constexpr const char* kDash = "\u2013";  // a dash

std::string in_seconds(double seconds) { return short_number(seconds) + " s"; }

struct ComparedColumn {
  const char* title;
  const char* key;
  std::string (*number)(double);  // null: the column has text
};
constexpr ComparedColumn kColumns[] = {{"every rank has", "copied", nullptr},
                                       {"each has a part of", "split", nullptr},
                                       {"sent", "sent", nullptr},
                                       {"sent by a rank in a step", "sent_bytes", human_bytes},
                                       {"on twice as many ranks", "sent_bytes_on_twice", human_bytes},
                                       {"memory", "peak_memory_bytes", human_bytes},
                                       {"time of a step", "step_seconds", in_seconds}};

std::string compared_cell(const ComparedWay& way, const ComparedColumn& column) {
  const std::string opening =
      cat("<td", column.number ? " class=\"number\"" : "", " data-title=\"", column.title, "\">");
  std::string shown = column.number ? kDash : "";
  const auto text = way.texts.find(column.key);
  const auto number = way.numbers.find(column.key);
  if (!column.number && text != way.texts.end()) shown = escaped(text->second);
  if (column.number && number != way.numbers.end()) shown = escaped(column.number(number->second));
  return cat(opening, shown, "</td>");
}

}  // namespace

std::string compared_table(const std::vector<ComparedWay>& ways) {
  if (ways.empty()) return "";
  std::string all = "<h2>Data and model parallelism</h2>\n<table class=\"compared\">\n<tr><th></th>";
  for (const ComparedColumn& column : kColumns) all += cat("<th>", column.title, "</th>");
  all += "</tr>\n";
  for (const ComparedWay& way : ways) {
    all += cat("<tr><th>", escaped(way.name), "</th>");
    for (const ComparedColumn& column : kColumns) all += compared_cell(way, column);
    all += "</tr>\n";
  }
  return all +
         "</table>\n<p class=\"note\">Each by itself on as many ranks as the run has, at least two; "
         "predicted, not measured. \u2013: this run cannot be split so.</p>\n";
}

}  // namespace braid::report
