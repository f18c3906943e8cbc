// braid simulate: plays schedules on a virtual clock and shows them as a grid, a summary, JSON, CSV or a picture.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/commands.h"
#include "braid/cli/simulate_request.h"
#include "braid/cli/terminal.h"
#include "braid/report/metrics_line.h"
#include "braid/report/timeline_svg.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/validate.h"
#include "braid/sim/simulate.h"
#include "braid/sim/summary.h"

namespace braid {
namespace {

constexpr int kPlainWidth = 160;  // of the grid when the output is no terminal

struct Played {
  Schedule schedule;
  Timeline timeline;
  Summary summary;
};

// "8" when all are alike, "4 3 2 1" else.
std::string per_rank(const std::vector<int>& values) {
  const bool alike = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  if (alike && !values.empty()) return std::to_string(values[0]);
  constexpr size_t kShown = 16;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(values.size(), kShown); ++i) words.push_back(std::to_string(values[i]));
  return joined(words, " ") + (values.size() > kShown ? " ..." : "");
}

// At most six decimals, no trailing zeros.
std::string number(double value) {
  std::string digits = fixed(value, 6);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

// One row per quantity, one column per schedule.
std::string summary_text(const std::vector<Played>& all) {
  struct Quantity {
    const char* name;
    std::string (*value)(const Summary&);
  };
  static constexpr Quantity kQuantities[] = {
      {"makespan", [](const Summary& s) { return number(s.makespan); }},
      {"bubble time", [](const Summary& s) { return number(s.bubble_time); }},
      {"bubble fraction", [](const Summary& s) { return fixed(100 * s.bubble_fraction, 2) + " %"; }},
      {"span bubble", [](const Summary& s) { return number(s.span_bubble); }},
      {"bubble rate", [](const Summary& s) { return fixed(s.bubble_rate, 4); }},
      {"peak activations", [](const Summary& s) { return per_rank(s.peak_activations); }},
      {"peak pending weight grads", [](const Summary& s) { return per_rank(s.peak_pending_weight_grads); }},
      {"weight versions", [](const Summary& s) { return std::to_string(s.weight_versions); }},
  };
  std::vector<std::string> lines;
  if (all.size() > 1) lines.emplace_back();  // names of the schedules
  for (const auto& quantity : kQuantities) lines.emplace_back(quantity.name);
  for (const auto& played : all) {
    size_t widest = 0;
    for (const auto& line : lines) widest = std::max(widest, line.size());
    size_t row = 0;
    const auto put = [&](const std::string& value) {
      lines[row].append(widest + 2 - lines[row].size(), ' ');
      lines[row++] += value;
    };
    if (all.size() > 1) put(played.schedule.name);
    for (const auto& quantity : kQuantities) put(quantity.value(played.summary));
  }
  return joined(lines, "\n") + "\n";
}

std::string json(const Played& played) {
  const Schedule& schedule = played.schedule;
  const Summary& s = played.summary;
  std::vector<std::string> programs;
  for (const auto& program : schedule.programs) {
    std::string words;
    for (const auto& action : program) {
      if (!words.empty()) words += ' ';
      words += text(action);
    }
    programs.push_back(std::move(words));
  }
  MetricsLine line;
  line.add("schedule", schedule.name).add("ranks", schedule.num_ranks());
  line.add("chunks", schedule.num_stages / schedule.num_ranks()).add("stages", schedule.num_stages);
  line.add("microbatches", schedule.num_microbatches).add("makespan", s.makespan);
  line.add("bubble_time", s.bubble_time).add("bubble_fraction", s.bubble_fraction);
  line.add("span_bubble", s.span_bubble).add("bubble_rate", s.bubble_rate);
  line.add("peak_activations", s.peak_activations).add("peak_pending_weight_grads", s.peak_pending_weight_grads);
  line.add("weight_versions", s.weight_versions).add("programs", programs);
  return line.text() + "\n";
}

// A terminal decides its own width and gets colour; anything else gets plain text.
GridStyle grid_style(const SimulateRequest& request) {
  GridStyle style;
  style.width = kPlainWidth;
  if (stdout_is_terminal()) {
    style.width = terminal_width();
    style.ink = std::getenv("NO_COLOR") == nullptr ? Ink::Ansi : Ink::Plain;
  }
  if (request.width) style.width = *request.width;
  return style;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw IoError(path, -1, "cannot be written");
}

// A schedule that never ends is drawn where it stops.
void refuse_deadlock(const SimulateRequest& request, const Schedule& schedule) {
  if (request.sends == SendMode::Buffered) return;
  const Schedule whole = with_comms(schedule);
  const std::vector<Fault> faults = validate(whole, request.sends);
  if (faults.empty()) return;
  std::cerr << print(whole, faults) << "\n";
  throw ConfigError(
      {{"--sends", "rendezvous", cat("stops ", schedule.name, " from ending, as drawn above"), "buffered"}});
}

Played play(const SimulateRequest& request, const std::string& name) {
  Schedule schedule = make_schedule(name, {request.ranks, request.microbatches});
  refuse_deadlock(request, schedule);
  Timeline timeline = simulate(schedule, request.cost, request.sends);
  Summary worth = summary(schedule, timeline);
  return {std::move(schedule), std::move(timeline), std::move(worth)};
}

std::string heading(const Played& played) {
  return cat(played.schedule.name, ", ", played.schedule.num_ranks(), " ranks, ", played.schedule.num_microbatches,
             " microbatches");
}

// With the transfers drawn when they take time.
std::string picture(const SimulateRequest& request, const std::vector<Played>& all) {
  std::vector<NamedTimeline> timelines;
  for (const auto& played : all) {
    const bool spelled = request.cost.transfer > 0 && !has_comms(played.schedule);
    timelines.push_back({heading(played), spelled ? simulate(with_comms(played.schedule), request.cost, request.sends)
                                                  : played.timeline});
  }
  return timeline_svg(timelines, TimeUnit::Units);
}

void show(const SimulateRequest& request, const std::vector<Played>& all) {
  for (const auto& played : all) {
    if (all.size() > 1) std::cout << heading(played) << "\n";
    std::cout << grid(played.timeline, grid_style(request)) << "\n";
  }
  std::cout << summary_text(all);
}

}  // namespace

int simulate_command(const Words& words) {
  const std::optional<SimulateRequest> request = simulate_request(words);
  if (!request) return 0;
  std::vector<Played> all;
  for (const auto& name : request->names) all.push_back(play(*request, name));
  if (!request->svg.empty()) write_file(request->svg, picture(*request, all));
  if (request->output == SimulateOutput::Text) show(*request, all);
  for (const auto& played : all) {
    if (request->output == SimulateOutput::Json) std::cout << json(played);
    if (request->output == SimulateOutput::Csv) std::cout << to_csv(played.schedule);
  }
  return 0;
}

}  // namespace braid
