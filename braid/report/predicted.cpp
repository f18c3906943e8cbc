// The rows that compare prediction and measurement, and the choice of steps that are measured.
#include "braid/report/predicted.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/base/text.h"
#include "braid/report/markup.h"

namespace braid::report {
namespace {

constexpr double kNoBubble = 5e-4;  // noise: the bubble that a single rank measures
constexpr size_t kLateSteps = 50;   // late steps whose median stands for the run

// Returns the median of the last steps, without the first step, which includes start-up costs.
double typical(const RunRecord& record, const std::string& key) {
  return late_median(record.since_last_start(key, 1), kLateSteps);
}

// Returns the mean, not the median: replicas that synchronise every few steps send much in one step and nothing in
// others.
double mean(const Series& series) {
  double sum = 0;
  for (const Point& point : series) sum += point.y;
  return sum / static_cast<double>(series.size());
}

double most(const std::vector<double>& values) {
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : *std::ranges::max_element(values);
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? short_number(1000 * seconds) + " ms" : short_number(seconds) + " s";
}

std::string signed_text(double value, int digits) { return cat(value < 0 ? "" : "+", fixed(value, digits)); }

std::string relative(double predicted, double measured) {
  return measured > 0 ? signed_text(100 * (predicted / measured - 1), 1) + " %" : "";
}

class Rows {
 public:
  explicit Rows(const RunRecord& record) : record_(record) {}

  std::vector<PredictedRow> all() {
    add("step", "step_seconds", typical(record_, "seconds"), seconds_text);
    add_bubble();
    add("gradients sent in a step", "sync_bytes", mean(record_.since_last_start("sync_bytes")), human_bytes);
    add("moved on disk in a step", "disk_bytes", mean(record_.since_last_start("disk_bytes")), human_bytes);
    add("peak memory", most(record_.predicted_peak), most(record_.peak_memory), human_bytes);
    for (const auto& [category, predicted] : record_.predicted_memory) {
      for (const auto& [name, measured] : record_.memory) {
        if (name == category) add("  " + name, most(predicted), most(measured), human_bytes);
      }
    }
    return std::move(rows_);
  }

 private:
  template <class Text>
  void add(const std::string& name, double predicted, double measured, const Text& text) {
    if (std::isnan(predicted) || std::isnan(measured) || (predicted == 0 && measured == 0)) return;
    rows_.push_back({name, text(predicted), text(measured), relative(predicted, measured)});
  }
  template <class Text>
  void add(const std::string& name, const std::string& key, double measured, const Text& text) {
    if (const auto found = record_.prediction.find(key); found != record_.prediction.end()) {
      add(name, found->second, measured, text);
    }
  }

  void add_bubble() {
    const auto found = record_.prediction.find("bubble_fraction");
    const double measured = typical(record_, "bubble_fraction");
    if (found == record_.prediction.end() || std::isnan(measured)) return;
    if (found->second == 0 && measured < kNoBubble) return;
    rows_.push_back({"bubble", percent(found->second), percent(measured),
                     signed_text(100 * (found->second - measured), 1) + " points"});
  }

  const RunRecord& record_;
  std::vector<PredictedRow> rows_;
};

}  // namespace

std::vector<PredictedRow> predicted_rows(const RunRecord& record) { return Rows(record).all(); }

std::string predicted_table(const std::vector<PredictedRow>& rows) {
  std::vector<PredictedRow> lines{{"", "predicted", "measured", "difference"}};
  lines.insert(lines.end(), rows.begin(), rows.end());
  std::string PredictedRow::*const columns[] = {&PredictedRow::name, &PredictedRow::predicted, &PredictedRow::measured,
                                                &PredictedRow::difference};
  std::string all;
  for (const PredictedRow& line : lines) {
    for (const auto column : columns) {
      size_t width = 0;
      for (const PredictedRow& other : lines) width = std::max(width, (other.*column).size());
      const std::string space(width - (line.*column).size(), ' ');
      all += column == columns[0] ? line.*column + space : cat("  ", space, line.*column);
    }
    all += "\n";
  }
  return all;
}

std::string predicted_html(const std::vector<PredictedRow>& rows) {
  if (rows.empty()) return "";
  std::string all = "<h2>Predicted and measured</h2>\n<table class=\"facts numbers\">\n";
  all += "<tr><th></th><td>predicted</td><td>measured</td><td>difference</td></tr>\n";
  for (const auto& [name, predicted, measured, difference] : rows) {
    all += cat("<tr><th>", escaped(name), "</th><td>", escaped(predicted), "</td><td>", escaped(measured), "</td><td>",
               escaped(difference), "</td></tr>\n");
  }
  return all +
         "</table>\n<p class=\"note\">Predicted after the first step, from the rates of the run\u2019s own ranks. "
         "Measured: medians of the last steps, and memory of the fullest rank.</p>\n";
}

}  // namespace braid::report
