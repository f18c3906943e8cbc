// braid simulate: plays schedules on a virtual clock and shows them as a grid, a summary, JSON, CSV or a picture.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
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

// The words as given; read() turns them into a request or into every fault at once.
struct Given {
  std::string schedule, compare, ranks, microbatches, forward, input_grad, weight_grad, transfer, width, svg;
  std::string sends = "buffered";
  bool json = false;
  bool csv = false;
};

struct Request {
  std::vector<std::string> names;
  int ranks = 0;
  int microbatches = 0;
  CostModel cost;
  SendMode sends = SendMode::Buffered;
  std::optional<int> width;
};

struct Played {
  Schedule schedule;
  Timeline timeline;
  Summary summary;
};

class Reader {
 public:
  Request read(const Given& given, const std::vector<std::string>& unknown, const std::vector<std::string>& options) {
    bool value = false;  // of an unknown option before it
    for (const auto& word : unknown) {
      const bool option = word.starts_with("-");
      if (option || !value)
        problems_.push_back({word, "", "is not an option of braid simulate", nearest(word, options)});
      value = option && word.find('=') == word.npos;
    }
    Request request;
    if (!given.schedule.empty()) add_name("--schedule", given.schedule, request.names);
    std::istringstream more(given.compare);
    for (std::string name; std::getline(more, name, ',');) add_name("--compare", name, request.names);
    if (request.names.empty()) {
      problems_.push_back({"--schedule", "", cat("is needed; one of ", joined(schedule_names())), ""});
    }
    request.ranks = count("--ranks", given.ranks);
    request.microbatches = count("--microbatches", given.microbatches);
    if (!given.width.empty()) request.width = natural("--width", given.width, 0);
    duration("--forward", given.forward, request.cost.forward);
    duration("--input-grad", given.input_grad, request.cost.input_grad);
    duration("--weight-grad", given.weight_grad, request.cost.weight_grad);
    duration("--transfer", given.transfer, request.cost.transfer);
    if (given.sends == "rendezvous") request.sends = SendMode::Rendezvous;
    if (given.sends != "rendezvous" && given.sends != "buffered") {
      const std::string close = nearest(given.sends, {"buffered", "rendezvous"});
      problems_.push_back({"--sends", given.sends, "must be buffered or rendezvous", close});
    }
    if (given.json && given.csv) problems_.push_back({"--csv", "", "cannot be had together with --json", ""});
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    return request;
  }

 private:
  void add_name(const char* key, const std::string& name, std::vector<std::string>& names) {
    names.push_back(name);
    const std::vector<std::string> known = schedule_names();
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    problems_.push_back({key, name, cat("must be one of ", joined(known)), nearest(name, known)});
  }

  int count(const char* key, const std::string& text) {
    if (!text.empty()) return natural(key, text, 1);
    problems_.push_back({key, "", "is needed; a whole number of at least 1", ""});
    return 0;
  }

  int natural(const char* key, const std::string& text, int least) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= least) return value;
    problems_.push_back({key, text, cat("must be a whole number of at least ", least), std::to_string(least)});
    return least;
  }

  void duration(const char* key, const std::string& text, double& value) {
    if (text.empty()) return;
    double read = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    const bool number = error == std::errc{} && end == text.data() + text.size();
    if (!number || !std::isfinite(read) || read < 0) {
      problems_.push_back({key, text, "must be a time, a number of at least 0", "0"});
      return;
    }
    value = read;
  }

  std::vector<Problem> problems_;
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
GridStyle grid_style(const Request& request) {
  GridStyle style;
  style.width = kPlainWidth;
  if (isatty(STDOUT_FILENO)) {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col;
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
void refuse_deadlock(const Request& request, const Schedule& schedule) {
  if (request.sends == SendMode::Buffered) return;
  const Schedule whole = with_comms(schedule);
  const std::vector<Fault> faults = validate(whole, request.sends);
  if (faults.empty()) return;
  std::cerr << print(whole, faults) << "\n";
  throw ConfigError(
      {{"--sends", "rendezvous", cat("stops ", schedule.name, " from ending, as drawn above"), "buffered"}});
}

Played play(const Request& request, const std::string& name) {
  Schedule schedule = make_schedule(name, request.ranks, request.microbatches);
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
std::string picture(const Request& request, const std::vector<Played>& all) {
  std::vector<NamedTimeline> timelines;
  for (const auto& played : all) {
    const bool spelled = request.cost.transfer > 0 && !has_comms(played.schedule);
    timelines.push_back({heading(played), spelled ? simulate(with_comms(played.schedule), request.cost, request.sends)
                                                  : played.timeline});
  }
  return timeline_svg(timelines, TimeUnit::Units);
}

void add_options(CLI::App& app, Given& given) {
  app.allow_extras();
  app.add_option("--schedule", given.schedule, cat("one of ", joined(schedule_names())));
  app.add_option("--ranks", given.ranks, "pipeline ranks");
  app.add_option("--microbatches", given.microbatches, "microbatches of a step");
  app.add_option("--forward", given.forward, "time of a forward pass (1)");
  app.add_option("--input-grad", given.input_grad, "time of an input-gradient pass (1)");
  app.add_option("--weight-grad", given.weight_grad, "time of a weight-gradient pass (1)");
  app.add_option("--transfer", given.transfer, "latency of a transfer between ranks (0)");
  app.add_option("--sends", given.sends, "buffered (a send waits for nothing) or rendezvous (for its receive)");
  app.add_option("--compare", given.compare, "more schedules, side by side: a,b");
  app.add_option("--svg", given.svg, "draw the timelines into this file");
  app.add_option("--width", given.width, "columns of the grid; 0: all (the terminal's, or 160)");
  app.add_flag("--json", given.json, "one JSON object per schedule and line");
  app.add_flag("--csv", given.csv, "the table of actions, one row per rank");
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) names.push_back(option->get_name());
  return names;
}

void show(const Request& request, const std::vector<Played>& all) {
  for (const auto& played : all) {
    if (all.size() > 1) std::cout << heading(played) << "\n";
    std::cout << grid(played.timeline, grid_style(request)) << "\n";
  }
  std::cout << summary_text(all);
}

}  // namespace

int simulate_command(const Words& words) {
  CLI::App app("Plays pipeline schedules on a virtual clock.", "braid simulate");
  Given given;
  add_options(app, given);
  if (const auto code = parse_words(app, words)) return *code;
  const Request request = Reader().read(given, app.remaining(), option_names(app));

  std::vector<Played> all;
  for (const auto& name : request.names) all.push_back(play(request, name));
  if (!given.svg.empty()) write_file(given.svg, picture(request, all));
  if (given.json) {
    for (const auto& played : all) std::cout << json(played);
  } else if (given.csv) {
    for (const auto& played : all) std::cout << to_csv(played.schedule);
  } else {
    show(request, all);
  }
  return 0;
}

}  // namespace braid
