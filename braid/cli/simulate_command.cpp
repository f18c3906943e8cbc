// braid simulate: plays schedules on a virtual clock and shows them as a grid, a summary, JSON, CSV or a picture.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/output_file.h"
#include "braid/base/text.h"
#include "braid/cli/commands.h"
#include "braid/cli/simulate_output.h"
#include "braid/cli/simulate_request.h"
#include "braid/cli/terminal.h"
#include "braid/report/chrome_trace.h"
#include "braid/report/timeline_svg.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/simulate.h"
#include "braid/schedule/validate.h"

namespace braid::cli {
namespace {

constexpr int kPlainWidth = 160;     // of the grid when the output is no terminal
constexpr int kLinesBelow = 12;      // of a terminal, for the summary and the prompt
constexpr int kFewestLines = 5;      // of a grid
constexpr int kMostLines = 60;       // of a grid in stretches, where the terminal has no more
constexpr int kMostDrawn = 1 << 28;  // characters of a grid

// A terminal decides its own size and gets colour; anything else gets plain text.
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

// A table that is no sound schedule, or a schedule that rendezvous sends would stop, is drawn with its faulty cells
// marked. What a generator made under buffered sends is sound (its tests prove that), and may have millions of actions.
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
  } else {  // there may be hundreds of millions of spans
    schedule::SpanTotals totals(schedule.num_ranks());
    schedule::simulate(schedule, cost, request.sends,
                       [&](int rank, const schedule::Span& span) { totals.add(rank, span); });
    played.summary = totals.summary(schedule);
  }
  if (request.times_of == TimesOf::Rank) played.stage_share = stage_share(schedule);
  played.schedule = std::move(schedule);
  return played;
}

// With the transfers drawn when they take time.
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

// Refuses drawings that are too large to look at, and perhaps for memory.
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
