// braid simulate: plays schedules on a virtual clock and shows them as a grid, a summary, JSON, CSV or a picture.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/output_file.h"
#include "braid/base/text.h"
#include "braid/cli/commands.h"
#include "braid/cli/simulate_request.h"
#include "braid/cli/terminal.h"
#include "braid/report/chrome_trace.h"
#include "braid/report/metrics_file.h"
#include "braid/report/timeline_svg.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/simulate.h"
#include "braid/schedule/summary.h"
#include "braid/schedule/timeline.h"
#include "braid/schedule/validate.h"

namespace braid::cli {
namespace {

// A schedule and the results of its simulation.
struct Played {
  Schedule schedule;
  schedule::Timeline timeline;  // empty if nothing draws it
  schedule::Summary summary;
  // A stage's fraction of the layers and of the times of its rank. It is set in comparisons, where all schedules run
  // the same model.
  std::optional<double> stage_share = {};
};

// Returns the value with at most six decimals and without trailing zeros.
std::string number(double value) {
  std::string digits = fixed(value, 6);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

double share_of(const Played& played) { return played.stage_share.value_or(1); }

// Returns "8" if all values are equal, else "4 3 2 1". Each value is multiplied by `share`.
std::string per_rank(const std::vector<int>& values, double share) {
  const bool alike = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  if (alike && !values.empty()) return number(values[0] * share);
  constexpr size_t kShown = 16;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(values.size(), kShown); ++i) words.push_back(number(values[i] * share));
  return joined(words, " ") + (values.size() > kShown ? " ..." : "");
}

constexpr const char* kSameModel =
    "All run the same model: with v stages on a rank a stage takes 1/v of the rank's times, and peaks are in "
    "microbatches "
    "of all its layers.\n";

// Returns a table with one row per quantity and one column per schedule. If a stage has a fraction of its rank's
// layers, peaks are in microbatches of all layers of the rank, and a line below says so.
std::string summary_text(const std::vector<Played>& all) {
  struct Quantity {
    const char* name;
    std::string (*value)(const Played&);
  };
  static constexpr Quantity kQuantities[] = {
      {"makespan", [](const Played& p) { return number(p.summary.makespan); }},
      {"bubble time", [](const Played& p) { return number(p.summary.bubble_time); }},
      {"bubble fraction", [](const Played& p) { return fixed(100 * p.summary.bubble_fraction, 2) + " %"; }},
      {"span bubble", [](const Played& p) { return number(p.summary.span_bubble); }},
      {"bubble rate", [](const Played& p) { return fixed(p.summary.bubble_rate, 4); }},
      {"peak activations", [](const Played& p) { return per_rank(p.summary.peak_activations, share_of(p)); }},
      {"peak pending weight grads",
       [](const Played& p) { return per_rank(p.summary.peak_pending_weight_grads, share_of(p)); }},
      {"weight versions", [](const Played& p) { return std::to_string(p.summary.weight_versions); }},
  };
  std::vector<std::string> lines;
  if (all.size() > 1) lines.emplace_back();  // line of the schedules' names
  for (const auto& quantity : kQuantities) lines.emplace_back(quantity.name);
  bool shares = false;  // some rank has several stages
  for (const auto& played : all) {
    shares = shares || share_of(played) != 1;
    size_t widest = 0;
    for (const auto& line : lines) widest = std::max(widest, line.size());
    size_t row = 0;
    const auto put = [&](const std::string& value) {
      lines[row].append(widest + 2 - lines[row].size(), ' ');
      lines[row++] += value;
    };
    if (all.size() > 1) put(played.schedule.name);
    for (const auto& quantity : kQuantities) put(quantity.value(played));
  }
  return joined(lines, "\n") + "\n" + (shares ? kSameModel : "");
}

// Writes one JSON object, with `programs` as the last key, and a newline. There may be millions of actions, so the
// programs are written one by one.
void write_json(std::ostream& out, const Played& played) {
  const Schedule& schedule = played.schedule;
  const schedule::Summary& s = played.summary;
  report::MetricsLine line;
  line.add("schedule", schedule.name).add("ranks", schedule.num_ranks());
  line.add("chunks", schedule.num_stages / schedule.num_ranks()).add("stages", schedule.num_stages);
  line.add("microbatches", schedule.num_microbatches).add("makespan", s.makespan);
  line.add("bubble_time", s.bubble_time).add("bubble_fraction", s.bubble_fraction);
  line.add("span_bubble", s.span_bubble).add("bubble_rate", s.bubble_rate);
  line.add("peak_activations", s.peak_activations).add("peak_pending_weight_grads", s.peak_pending_weight_grads);
  line.add("weight_versions", s.weight_versions);
  if (played.stage_share) line.add("stage_share", *played.stage_share);
  std::string head = line.text();
  head.pop_back();
  out << head << ",\"programs\":[";
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    out << (rank > 0 ? ",\"" : "\"") << schedule::text(schedule.programs[rank]) << '"';  // needs no escapes
  }
  out << "]}\n";
}

// Returns "1f1b, 4 ranks, 8 microbatches".
std::string heading(const Played& played) {
  return cat(played.schedule.name, ", ", counted(played.schedule.num_ranks(), "rank"), ", ",
             counted(played.schedule.num_microbatches, "microbatch"));
}

constexpr int kPlainWidth = 160;     // width of the grid if the output is no terminal
constexpr int kLinesBelow = 12;      // lines of a terminal for the summary and the prompt
constexpr int kFewestLines = 5;      // fewest lines of a grid
constexpr int kMostLines = 60;       // most lines of a grid in stretches, unless the terminal has more
constexpr int kMostDrawn = 1 << 28;  // most characters of a grid

// Returns the style of a grid. On a terminal the grid has the terminal's size and colour; other outputs get plain text.
schedule::GridStyle grid_style(const SimulateRequest& request, const Schedule& schedule) {
  schedule::GridStyle style;
  style.width = kPlainWidth;
  if (stdout_is_terminal()) {
    style.width = terminal_width();
    style.height = std::max(kFewestLines, terminal_height() - kLinesBelow);
    style.ink =
        terminal_takes_escapes() && std::getenv("NO_COLOR") == nullptr ? schedule::Color::Ansi : schedule::Color::Plain;
  }
  if (request.width) style.width = *request.width;
  style.stretches = std::max(1, std::max(style.height, kMostLines) / (schedule.num_ranks() + 1));
  return style;
}

// Throws ConfigError for a table that is not a sound schedule, and for a schedule that deadlocks under rendezvous
// sends. Draws the schedule first, with its faulty cells marked. Generated schedules are not validated under buffered
// sends: they are sound, as the generators' tests prove, and may have millions of actions.
void refuse_faults(const Schedule& schedule, schedule::SendMode sends) {
  const bool generated = find_schedule(schedule.name) != nullptr;
  const std::vector<schedule::Fault> faults =
      generated ? std::vector<schedule::Fault>{} : schedule::validate(schedule, schedule::SendMode::Buffered);
  if (!faults.empty()) {
    std::cerr << printable(schedule::print(schedule, faults), SIZE_MAX, LineBreaks::Kept) << "\n";
    throw ConfigError({{"--schedule", schedule.name, "is not a sound schedule, as drawn above", ""}});
  }
  if (sends == schedule::SendMode::Buffered) return;
  const Schedule whole = schedule::with_comms(schedule);
  const std::vector<schedule::Fault> stuck = schedule::validate(whole, sends);
  if (stuck.empty()) return;
  std::cerr << printable(schedule::print(whole, stuck), SIZE_MAX, LineBreaks::Kept) << "\n";
  throw ConfigError(
      {{"--sends", "rendezvous", cat("stops ", schedule.name, " from ending, as drawn above"), "buffered"}});
}

bool draws(const SimulateRequest& request) {
  return request.output == SimulateOutput::Text || !request.svg.empty() || !request.trace.empty();
}

double stage_share(const Schedule& schedule) { return double{1} * schedule.num_ranks() / schedule.num_stages; }

schedule::CostModel cost_of(const SimulateRequest& request, const Schedule& schedule) {
  return request.times_of == TimesOf::Stage ? request.cost : schedule::with_share(request.cost, stage_share(schedule));
}

Played play(const SimulateRequest& request, Schedule schedule) {
  refuse_faults(schedule, request.sends);
  const schedule::CostModel cost = cost_of(request, schedule);
  Played played;
  if (draws(request)) {
    played.timeline = schedule::simulate(schedule, cost, request.sends);
    played.summary = schedule::summary(schedule, played.timeline);
  } else {  // up to hundreds of millions of spans, which are not kept
    schedule::SpanTotals totals(schedule.num_ranks());
    schedule::simulate(schedule, cost, request.sends,
                       [&](int rank, const schedule::Span& span) { totals.add(rank, span); });
    played.summary = totals.summary(schedule);
  }
  if (request.times_of == TimesOf::Rank) played.stage_share = stage_share(schedule);
  played.schedule = std::move(schedule);
  return played;
}

// Returns the timelines to draw. They show transfers if these take time.
std::vector<report::NamedTimeline> pictured(const SimulateRequest& request, const std::vector<Played>& all) {
  std::vector<report::NamedTimeline> timelines;
  for (const auto& played : all) {
    const bool spelled = request.cost.transfer > 0 && !schedule::has_comms(played.schedule);
    timelines.push_back({heading(played), spelled ? schedule::simulate(schedule::with_comms(played.schedule),
                                                                       cost_of(request, played.schedule), request.sends)
                                                  : played.timeline});
  }
  return timelines;
}

// Throws ConfigError for a grid that is too large to look at, and perhaps too large for memory.
void refuse_huge_grids(const SimulateRequest& request, const std::vector<Played>& all) {
  for (const auto& played : all) {
    const schedule::GridStyle style = grid_style(request, played.schedule);
    const double size = schedule::grid_size(played.timeline, style);
    if (size <= kMostDrawn) continue;
    const bool wide = style.width == 0 || style.width > kPlainWidth;
    throw ConfigError({{wide ? "--width" : "--ranks", cat(wide ? style.width : played.schedule.num_ranks()),
                        cat("would draw ", heading(played), " in ", exact(std::round(size)), " characters; at most ",
                            kMostDrawn, " are drawn"),
                        wide ? cat(kPlainWidth) : ""}});
  }
}

void show(const SimulateRequest& request, const std::vector<Played>& all) {
  for (const auto& played : all) {
    if (all.size() > 1) std::cout << shown_on_line(heading(played)) << "\n";
    std::cout << schedule::grid(played.timeline, grid_style(request, played.schedule)) << "\n";
  }
  std::cout << shown_on_stdout(summary_text(all));
}

}  // namespace

int simulate_command(const Words& words) {
  std::optional<SimulateRequest> request = simulate_request(words);
  if (!request) return 0;
  std::vector<Played> all;
  for (auto& schedule : request->schedules) all.push_back(play(*request, std::move(schedule)));
  if (request->output == SimulateOutput::Text) refuse_huge_grids(*request, all);
  if (!request->svg.empty())
    write_named_file(request->svg, report::timeline_svg(pictured(*request, all), report::TimeUnit::Units));
  if (!request->trace.empty()) write_named_file(request->trace, report::chrome_trace(pictured(*request, all)));
  if (request->output == SimulateOutput::Text) show(*request, all);
  if (request->output == SimulateOutput::Summary) std::cout << shown_on_stdout(summary_text(all));
  for (const auto& played : all) {
    if (request->output == SimulateOutput::Json) write_json(std::cout, played);
    if (request->output == SimulateOutput::Csv) std::cout << schedule::to_csv(played.schedule);
  }
  return 0;
}

}  // namespace braid::cli
