// The page of a run: the order and the text of its parts.
#include "braid/report/run_page.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/base/text.h"
#include "braid/report/chart.h"
#include "braid/report/markup.h"
#include "braid/report/page_style.h"
#include "braid/report/predicted.h"
#include "braid/report/progress.h"
#include "braid/report/run_tables.h"
#include "braid/spec/data_spec.h"
#include "braid/spec/toml_document.h"

namespace braid::report {
namespace {

constexpr size_t kFewestToSmooth = 20;
constexpr size_t kSmoothness = 60;  // a smoothed point is the mean over 2 of this many parts of the run
constexpr size_t kTypical = 50;     // late steps whose median stands for the run's speed
constexpr size_t kMostRows = 64;    // most ranks of a timeline

class Page {
 public:
  explicit Page(const RunPage& page)
      : page_(page), record_(page.record), config_(spec::toml_document(page.config_toml, "config.toml")) {}

  std::string text() const {
    std::string all = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    all += "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n";
    all += cat("<title>", escaped(page_.name), " \u00b7 braid</title>\n<style>", kPageStyle,
               "</style>\n</head>\n<body>\n");
    all += cat("<main>\n", header(), tiles(), curves(), timeline(), predicted_html(predicted_rows(record_)),
               compared_table(record_.compared), layers(), model(), memory(), configuration(), environment());
    return cat(all, "<footer>Written by braid report.</footer>\n</main>\n<script>", kPageScript,
               "</script>\n</body>\n</html>\n");
  }

 private:
  const Series& series(const std::string& key) const {
    static const Series kNone;
    const auto found = record_.steps.find(key);
    return found == record_.steps.end() ? kNone : found->second;
  }

  // Returns the steps of the last start. If it has none, as in a finished run that is resumed, returns all steps.
  Series last_start(const std::string& key) const {
    const Series steps = record_.since_last_start(key);
    return steps.empty() ? series(key) : steps;
  }

  double start(const std::string& key) const {
    const auto found = record_.start.find(key);
    return found == record_.start.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  }

  // Returns a value of the configuration as written; empty if it is missing.
  std::string config(const std::string& section, const std::string& leaf) const {
    for (const auto& [name, content] : config_.root) {
      const spec::TomlTable* table = content.as<spec::TomlTable>();
      if (name != section || table == nullptr) continue;
      for (const auto& [key, value] : *table) {
        if (key == leaf) return value.as<std::string>() ? *value.as<std::string>() : value.written;
      }
    }
    return "";
  }

  // Returns the run's main facts in one line.
  std::string summary() const {
    std::vector<std::string> parts{config("model", "family")};
    if (!std::isnan(start("parameters"))) {
      parts.push_back(cat(grouped(static_cast<int64_t>(start("parameters"))), " parameters"));
    }
    std::vector<std::string> sides;
    for (const char* axis : {"pipe", "data", "tensor", "context"}) {
      if (const std::string size = config("mesh", axis); !size.empty()) sides.push_back(cat(axis, " ", size));
    }
    parts.push_back(joined(sides, " \u00d7 "));
    parts.push_back(config("train", "dtype"));
    const std::string steps = config("train", "steps");
    parts.push_back(cat("step ", record_.num_steps(), steps.empty() ? "" : " of ", steps));
    std::erase(parts, "");
    return joined(parts, " \u00b7 ");
  }

  std::string header() const {
    std::string all =
        cat("<header><h1>", escaped(page_.name), "</h1>\n<p class=\"lead\">", escaped(summary()), "</p>\n");
    for (const std::string& fault : page_.faults) all += cat("<p class=\"fault\">", escaped(fault), "</p>\n");
    if (record_.first_steps.size() > 1) {
      std::vector<std::string> steps;
      for (size_t i = 1; i < record_.first_steps.size(); ++i) steps.push_back(cat(record_.first_steps[i]));
      all += cat("<p class=\"lead\">Started ", counted(record_.first_steps.size(), "time"), ", again after step ",
                 joined(steps), "; what was superseded is left out.</p>\n");
    }
    return all + "</header>\n";
  }

  static std::string tile(const std::string& name, const std::string& value, const std::string& more) {
    return cat("<div class=\"tile\"><div class=\"name\">", name, "</div><div class=\"value\">", value,
               "</div><div class=\"more\">", more, "</div></div>\n");
  }

  std::string tiles() const {
    std::string all = "<section class=\"tiles\">\n";
    const double bigram = start("bigram_entropy");
    if (!record_.validation.empty()) {
      const double loss = record_.validation.back().y;
      all += tile("Validation loss", fixed(loss, 4),
                  std::isnan(bigram)
                      ? "nats per token"
                      : cat(loss < bigram ? "below" : "not below", " the bigram\u2019s ", fixed(bigram, 3)));
    }
    if (!record_.validation_per_byte.empty() && config("data", "tokenizer") != kByteTokenizer) {
      all += tile("Validation loss per byte", fixed(record_.validation_per_byte.back().y, 4), "nats per byte of text");
    }
    const Series& loss = series("loss");
    if (!loss.empty()) {
      all += tile("Training loss", fixed(late_median(loss, kTypical), 4),
                  cat("median of the last ", std::min(kTypical, loss.size())));
    }
    const double rate = late_median(last_start("tokens_per_second"), kTypical);
    if (!std::isnan(rate)) all += tile("Tokens/s", short_number(rate), seconds_per_step());
    all += utilisation_tile();
    const double bubble = late_median(last_start("bubble_fraction"), kTypical);
    if (!std::isnan(bubble)) all += tile("Bubble", fixed(100 * bubble, 1) + " <small>%</small>", bubble_note());
    if (!record_.peak_memory.empty()) {
      const double most = *std::max_element(record_.peak_memory.begin(), record_.peak_memory.end());
      all += tile("Peak memory", split_unit(human_bytes(most)),
                  record_.peak_memory.size() > 1 ? "of the fullest rank" : "of tensors");
    }
    return all + time_tile() + "</section>\n";
  }

  // Returns the tile with the time of all steps. Steps that were not logged count as the mean of the logged ones.
  std::string time_tile() const {
    const Series& logged = series("seconds");
    double seconds = 0;
    for (const Point& point : logged) seconds += point.y;
    if (seconds <= 0) return "";
    const double first = record_.first_steps.empty() ? 0 : static_cast<double>(record_.first_steps.front());
    const double steps = std::max(logged.back().x - first, static_cast<double>(logged.size()));
    const double all = seconds / static_cast<double>(logged.size()) * steps;
    const bool is_whole = steps <= static_cast<double>(logged.size());
    return tile("In steps", (is_whole ? "" : "about ") + duration_text(all),
                is_whole ? cat("all ", logged.size(), " of them")
                         : cat("by ", logged.size(), " of ", steps, " steps, which were logged"));
  }

  std::string utilisation_tile() const {
    const double share = late_median(last_start("mfu"), kTypical);
    if (std::isnan(share)) return "";
    return tile("Utilisation (MFU)", fixed(100 * share, 1) + " <small>%</small>", cat("of ", peak()));
  }

  std::string peak() const {
    const char* source = record_.peak_source == "measured" ? "measured"
                         : record_.peak_source == "step"   ? "reached by a step"
                                                           : "given";
    return cat(flops_text(record_.peak_flops), " a rank, ", source);
  }

  std::string seconds_per_step() const {
    const double seconds = late_median(last_start("seconds"), kTypical);
    if (std::isnan(seconds)) return "";
    return seconds < 1 ? cat(short_number(1000 * seconds), " ms a step") : cat(short_number(seconds), " s a step");
  }

  // The tile's main number is a median of many steps; this note is about the one step in the timeline.
  std::string bubble_note() const {
    if (page_.timelines.size() < 2) return "of the pipeline";
    const auto bubble = [&](size_t i) { return fixed(100 * page_.timelines[i].timeline.bubble_fraction(), 1); };
    return cat("last step ", bubble(0), " %, without waiting ", bubble(1), " %");
  }

  static std::string split_unit(const std::string& amount) {
    const size_t space = amount.find(' ');
    return cat(amount.substr(0, space), " <small>", amount.substr(space + 1), "</small>");
  }

  std::vector<double> breaks() const {
    std::vector<double> steps;
    for (size_t i = 1; i < record_.first_steps.size(); ++i)
      steps.push_back(static_cast<double>(record_.first_steps[i]));
    return steps;
  }

  // Returns the raw values as a faint curve and the smoothed values over it.
  static std::vector<Curve> with_trend(const std::string& name, const Series& series) {
    if (series.size() < kFewestToSmooth) return {{name, series, Stroke::Main, Marks::None}};
    const size_t half_width = std::max<size_t>(2, series.size() / kSmoothness);
    return {{name, series, Stroke::Faint, Marks::None},
            {name + ", smoothed", smoothed(series, half_width), Stroke::Main, Marks::None}};
  }

  std::string curves() const {
    Chart loss{.title = "Loss", .unit = "nats per token", .breaks = breaks(), .width = ChartWidth::Whole};
    loss.curves = with_trend("training", series("loss"));
    if (!record_.validation.empty())
      loss.curves.push_back({"validation", record_.validation, Stroke::Second, Marks::Dots});
    if (!std::isnan(start("bigram_entropy"))) loss.levels.push_back({"bigram entropy", start("bigram_entropy")});
    std::string all = chart_figure(loss);
    const auto chart = [&](const char* title, const char* unit, std::vector<Curve> drawn, Base base) {
      all += chart_figure({.title = title, .unit = unit, .curves = std::move(drawn), .breaks = breaks(), .base = base});
    };
    chart("Learning rate", "", {{"learning rate", series("learning_rate")}}, Base::Zero);
    chart("Gradient norm", "before clipping", with_trend("norm", series("grad_norm")), Base::Data);
    chart("Throughput", "tokens/s", with_trend("tokens/s", series("tokens_per_second")), Base::Zero);
    chart("Model-FLOP utilisation", "%", with_trend("mfu", percent(series("mfu"))), Base::Zero);
    if (const std::string pipe = config("mesh", "pipe"); !pipe.empty() && pipe != "1")
      chart("Bubble", "% of the pipeline\u2019s time", with_trend("bubble", percent(series("bubble_fraction"))),
            Base::Zero);
    if (all.empty()) return "<h2>Curves</h2>\n<p class=\"note\">No step has been logged yet.</p>\n";
    return cat("<h2>Over the steps</h2>\n<section class=\"charts\">\n", all, "</section>\n");
  }

  static Series percent(Series series) {
    for (Point& point : series) point.y *= 100;
    return series;
  }

  std::string timeline() const {
    if (page_.timelines.empty()) return "";
    std::vector<NamedTimeline> shown = page_.timelines;
    size_t num_ranks = 0;
    for (auto& named : shown) {
      num_ranks = std::max(num_ranks, named.timeline.ranks.size());
      named.timeline.ranks.resize(std::min(named.timeline.ranks.size(), kMostRows));
      named.timeline.disk.resize(std::min(named.timeline.disk.size(), kMostRows));
    }
    std::string all =
        cat("<h2>The last step</h2>\n<section class=\"panel wide\">", timeline_svg(shown), "</section>\n");
    if (num_ranks > kMostRows)
      all += cat("<p class=\"note\">The first ", kMostRows, " of ", counted(num_ranks, "rank"), ".</p>\n");
    return all + "<p class=\"note\">trace.json in the run\u2019s folder opens in Perfetto with every span.</p>\n";
  }

  std::string layers() const {
    std::string rows;
    for (const auto& [layer, norms] : record_.layer_grad_norms) {
      if (norms.empty()) continue;
      const double most = std::ranges::max_element(norms, {}, &Point::y)->y;
      rows += cat("<tr><th>", escaped(layer), "</th><td>", short_number(late_median(norms, kTypical)), ", at most ",
                  short_number(most), "</td></tr>\n");
    }
    if (rows.empty()) return "";
    return cat("<h2>Gradient norm by layer</h2>\n<table class=\"facts\">\n", rows,
               "</table>\n<p class=\"note\">Median of the last ", kTypical,
               " logged steps, and the most of all.</p>\n");
  }

  std::string model() const {
    if (page_.model_svg.empty()) return "";
    return cat("<h2>Model</h2>\n<section class=\"panel wide\">", page_.model_svg, "</section>\n");
  }

  std::string memory() const {
    const std::string bars = memory_bars({record_.memory, record_.peak_memory});
    if (bars.empty()) return "";
    return cat(
        "<h2>Memory</h2>\n<section class=\"panel\">", bars, "</section>\n",
        "<p class=\"note\">Each category at its own peak, so that a bar may be longer than the most in use at once. "
        "The numbers are the latter.</p>\n");
  }

  std::string configuration() const {
    if (page_.config_toml.empty()) return "";
    return cat("<h2>Configuration</h2>\n", config_tables(page_.config_toml),
               "<p class=\"note\">Marked: what differs from the default.</p>\n");
  }

  std::string environment() const {
    std::string rows;
    const auto row = [&](const std::string& name, const std::string& value) {
      rows += cat("<tr><th>", escaped(name), "</th><td>", escaped(value), "</td></tr>\n");
    };
    for (const auto& [name, value] : record_.environment) row(name, value);
    for (const auto& [key, name] :
         {std::pair{"train_tokens", "tokens to train on"}, {"validation_tokens", "tokens held out"}}) {
      if (!std::isnan(start(key))) row(name, grouped(static_cast<int64_t>(start(key))));
    }
    if (record_.peak_flops > 0) row("peak", peak());
    for (const auto& [step, folder] : record_.checkpoints) row(cat("checkpoint ", step), folder);
    return rows.empty() ? "" : cat("<h2>Environment</h2>\n<table class=\"facts\">\n", rows, "</table>\n");
  }

  const RunPage& page_;
  const RunRecord& record_;
  const spec::TomlDocument config_;
};

}  // namespace

std::string run_page(const RunPage& page) { return Page(page).text(); }

}  // namespace braid::report
