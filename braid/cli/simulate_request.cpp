// The options of braid simulate. CLI11 splits the words; the checks are here, so that all faults come in one message.
#include "braid/cli/simulate_request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/schedule/generators.h"

namespace braid {
namespace {

// The words as given; read() turns them into a request or into every fault at once.
struct Given {
  std::string schedule, compare, ranks, microbatches, forward, input_grad, weight_grad, transfer, width, svg;
  std::string sends = "buffered";
  bool json = false;
  bool csv = false;
};

class Reader {
 public:
  SimulateRequest read(const Given& given, const std::vector<std::string>& unknown,
                       const std::vector<std::string>& options) {
    bool value = false;  // of an unknown option before it
    for (const auto& word : unknown) {
      const bool option = word.starts_with("-");
      if (option || !value)
        problems_.push_back({word, "", "is not an option of braid simulate", nearest(word, options)});
      value = option && word.find('=') == word.npos;
    }
    SimulateRequest request;
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
    if (given.json) request.output = SimulateOutput::Json;
    if (given.csv) request.output = SimulateOutput::Csv;
    request.svg = given.svg;
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

}  // namespace

std::optional<SimulateRequest> simulate_request(const Words& words) {
  CLI::App app("Plays pipeline schedules on a virtual clock.", "braid simulate");
  Given given;
  add_options(app, given);
  if (parse_words(app, words)) return std::nullopt;
  return Reader().read(given, app.remaining(), option_names(app));
}

}  // namespace braid
