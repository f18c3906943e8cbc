// The tables and memory bars of a run's page, as HTML.
#include "braid/report/run_tables.h"

#include <algorithm>
#include <numeric>

#include "braid/base/text.h"
#include "braid/report/chart_axis.h"
#include "braid/report/markup.h"
#include "braid/spec/fields.h"
#include "braid/spec/toml_document.h"

namespace braid::report {
namespace {

constexpr double kTicks = 8;
constexpr double kThinnest = 0.0005;  // fraction of the scale; thinner parts are left out

class Bars {
 public:
  explicit Bars(const MemoryBars& memory) : memory_(memory), num_ranks_(memory.totals.size()) {
    for (const auto& [name, bytes] : memory.categories) num_ranks_ = std::max(num_ranks_, bytes.size());
    for (size_t rank = 0; rank < num_ranks_; ++rank) scale_ = std::max(scale_, length(rank));
  }

  std::string text() const {
    if (scale_ == 0) return "";
    std::string all = "<div class=\"memory\">\n" + legend();
    for (const size_t rank : shown()) all += row(rank);
    all += axis() + "</div>\n";
    if (num_ranks_ <= kMostBars) return all;
    return all + cat("<p class=\"note\">The ", kMostBars, " ranks that use the most, of ", num_ranks_, ".</p>\n");
  }

 private:
  static double at(const std::vector<double>& bytes, size_t rank) { return rank < bytes.size() ? bytes[rank] : 0; }

  double sum(size_t rank) const {
    double bytes = 0;
    for (const auto& category : memory_.categories) bytes += at(category.second, rank);
    return bytes;
  }
  double length(size_t rank) const { return std::max(sum(rank), at(memory_.totals, rank)); }

  std::vector<size_t> shown() const {
    std::vector<size_t> ranks(num_ranks_);
    std::iota(ranks.begin(), ranks.end(), size_t{0});
    if (num_ranks_ <= kMostBars) return ranks;
    std::stable_sort(ranks.begin(), ranks.end(), [&](size_t a, size_t b) { return length(a) > length(b); });
    ranks.resize(kMostBars);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  std::string legend() const {
    std::string all = "<div class=\"legend\">";
    for (size_t i = 0; i < memory_.categories.size(); ++i) {
      all += cat("<span><i class=\"m", i, "\"></i>", escaped(memory_.categories[i].first), "</span>");
    }
    if (!memory_.totals.empty()) all += "<span><i class=\"most\"></i>most in use at once</span>";
    return all + "</div>\n";
  }

  std::string row(size_t rank) const {
    std::string all = cat("<div class=\"row\"><span class=\"who\">rank ", rank, "</span><div class=\"stack\">");
    for (size_t i = 0; i < memory_.categories.size(); ++i) {
      const auto& [name, bytes] = memory_.categories[i];
      if (at(bytes, rank) < kThinnest * scale_) continue;
      all += cat("<i class=\"m", i, "\" style=\"width:", percent(at(bytes, rank) / scale_), "\" title=\"",
                 escaped(name), " ", human_bytes(at(bytes, rank)), "\"></i>");
    }
    const double most = at(memory_.totals, rank);
    if (most > 0) all += cat("<b style=\"left:", percent(most / scale_), "\"></b>");
    return cat(all, "</div><span class=\"sum\">", human_bytes(most > 0 ? most : sum(rank)), "</span></div>\n");
  }

  std::string axis() const {
    double unit = 1;
    while (scale_ / unit >= 1024) unit *= 1024;
    const double step = round_step(scale_ / unit / kTicks) * unit;
    std::string all = "<div class=\"row\"><span class=\"who\"></span><div class=\"ticks\">";
    for (int i = 0; i * step <= scale_; ++i) {
      all +=
          cat("<span style=\"left:", percent(i * step / scale_), "\">", i == 0 ? "0" : tick(i * step, unit), "</span>");
    }
    return all + "</div><span class=\"sum\"></span></div>\n";
  }

  static std::string tick(double bytes, double unit) {
    const std::string name = human_bytes(unit);
    return coordinate(bytes / unit) + name.substr(name.find(' '));
  }

  const MemoryBars& memory_;
  size_t num_ranks_;
  double scale_ = 0;
};

}  // namespace

std::string memory_bars(const MemoryBars& memory) { return Bars(memory).text(); }

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
  std::string (*number)(double);  // null if the column holds text
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
