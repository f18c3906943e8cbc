// One row for each way.
#include "braid/report/compared_table.h"

#include "braid/base/text.h"
#include "braid/report/markup.h"

namespace braid::report {
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
