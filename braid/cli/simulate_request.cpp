// Reads the options of braid simulate. CLI11 only splits the words. They are checked here, so that all faults are
// reported in one message.
#include "braid/cli/simulate_request.h"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/option_reader.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/schedule_source.h"
#include "braid/schedule/cost_model.h"

namespace braid::cli {
namespace {

constexpr int kMostPasses = 1 << 26;       // the actions take a gigabyte, and their times another
constexpr int kMostDrawnPasses = 1 << 24;  // the limit for drawings, which keep the spans too
constexpr double kMostSize = 1e15;         // largest size of a microbatch, in any unit

// The values of options, as the user gave them.
struct SimulateOptions {
  std::string schedule, compare, ranks, microbatches, chunks, group;
  std::string forward, input_grad, weight_grad, overlapped, recompute, update, transfer, activation, pending;
  std::string stage_times, width, svg, trace;
  std::string sends = "buffered";
  bool summary = false, json = false, csv = false;
};

// Converts the options to a request, or reports all their faults at once.
class Reading {
 public:
  explicit Reading(const SimulateOptions& given) : given_(given) {}

  void refuse_unknown(const std::vector<std::string>& unknown, const std::vector<std::string>& options) {
    bool value = false;  // the word may be the value of an unknown option before it
    for (const auto& word : unknown) {
      const bool option = word.starts_with("-");
      if (option || !value) reader_.add({word, "", "is not an option of braid simulate", nearest(word, options)});
      value = option && word.find('=') == word.npos;
    }
  }

  SimulateRequest request() {
    read_names();
    read_numbers();
    read_times();
    read_output();
    make();
    reader_.throw_problems();
    return std::move(request_);
  }

 private:
  void read_names() {
    if (!given_.schedule.empty()) names_.push_back({"--schedule", given_.schedule});
    std::istringstream more(given_.compare);
    for (std::string name; std::getline(more, name, ',');) names_.push_back({"--compare", name});
    if (!names_.empty()) return;
    const std::string known = joined(schedule_names());
    reader_.add({"--schedule", "", cat("is needed; file:PATH or one of ", known), ""});
  }

  // Reads the numbers of ranks and microbatches, which are required unless all schedules are tables, and the other
  // numbers.
  void read_numbers() {
    const bool needed = !std::all_of(names_.begin(), names_.end(), is_file) || names_.empty();
    const size_t before = reader_.num_problems();
    const auto read = [&](const char* key, const std::string& text, bool required) {
      if (!text.empty()) return reader_.natural(key, text, 1);
      if (required) reader_.add({key, "", "is needed; a whole number of at least 1", ""});
      return 0;
    };
    wanted_.ranks = read("--ranks", given_.ranks, needed);
    wanted_.microbatches = read("--microbatches", given_.microbatches, needed);
    wanted_.chunks = read("--chunks", given_.chunks, false);
    wanted_.group = read("--group", given_.group, false);
    refuse_too_many_passes();
    if (reader_.num_problems() > before) numbers_ = Numbers::Wrong;
    if (!given_.width.empty()) request_.width = reader_.natural("--width", given_.width, 0);
  }

  int most_passes() const {
    const bool numbers_alone = given_.summary || given_.json || given_.csv;
    return numbers_alone && given_.svg.empty() && given_.trace.empty() ? kMostPasses : kMostDrawnPasses;
  }

  // Adds a problem if there are too many passes. It names the largest of the three numbers.
  void refuse_too_many_passes() {
    const std::pair<int, const char*> counts[] = {
        {wanted_.ranks, "--ranks"}, {wanted_.chunks, "--chunks"}, {wanted_.microbatches, "--microbatches"}};
    const auto& [count, key] = *std::max_element(std::begin(counts), std::end(counts));
    const double passes = 1.0 * wanted_.ranks * std::max(1, wanted_.chunks) * wanted_.microbatches;
    if (passes <= most_passes()) return;
    const auto most = static_cast<int64_t>(most_passes() / (passes / count));
    const std::string undrawn = most_passes() < kMostPasses ? cat(", or ", kMostPasses, " with --summary") : "";
    reader_.add({key, cat(count), cat("must leave ranks x chunks x microbatches at or below ", most_passes(), undrawn),
                 most > 0 ? cat(most) : ""});
  }

  void time(const char* key, const std::string& text, double& value) {
    reader_.read(key, text, {"a time", schedule::kMostTime}, value);
  }

  void time(const char* key, const std::string& text, std::optional<double>& value) {
    double read = 0;
    time(key, text, read);
    if (!text.empty()) value = read;
  }

  void read_times() {
    schedule::CostModel& cost = request_.cost;
    time("--forward", given_.forward, cost.forward);
    time("--input-grad", given_.input_grad, cost.input_grad);
    time("--weight-grad", given_.weight_grad, cost.weight_grad);
    time("--overlapped", given_.overlapped, cost.overlapped);
    time("--recompute", given_.recompute, cost.recompute);
    time("--update", given_.update, cost.update);
    time("--transfer", given_.transfer, cost.transfer);
    if (!given_.stage_times.empty()) read_stage_times();
    wanted_.forward = cost.forward;
    wanted_.input_grad = cost.input_grad;
    wanted_.weight_grad = cost.weight_grad;
    wanted_.transfer = cost.transfer;
    if (names_.size() > 1 && given_.stage_times.empty()) request_.times_of = TimesOf::Rank;
    reader_.read("--activation", given_.activation, {"a size", kMostSize}, wanted_.activation);
    reader_.read("--pending", given_.pending, {"a size", kMostSize}, wanted_.pending);
  }

  // Reads --stage-times. A schedule whose order depends on times uses their means over the stages.
  void read_stage_times() {
    const std::pair<const char*, const std::string*> alone[] = {{"--forward", &given_.forward},
                                                                {"--input-grad", &given_.input_grad},
                                                                {"--weight-grad", &given_.weight_grad},
                                                                {"--recompute", &given_.recompute},
                                                                {"--update", &given_.update}};
    for (const auto& [key, text] : alone) {
      if (!text->empty()) reader_.add({key, *text, "cannot be had together with --stage-times", ""});
    }
    schedule::CostModel& cost = request_.cost;
    try {
      const std::string& path = given_.stage_times;
      cost.stages = schedule::parse_stage_times(named_file_content({"--stage-times", path, path}), path);
    } catch (const ConfigError& error) {
      for (const auto& problem : error.problems()) reader_.add(problem);
      return;
    }
    cost.forward = cost.input_grad = cost.weight_grad = 0;
    for (const schedule::StageTimes& stage : cost.stages) {
      cost.forward += stage.forward / cost.stages.size();
      cost.input_grad += stage.input_grad / cost.stages.size();
      cost.weight_grad += stage.weight_grad / cost.stages.size();
    }
  }

  void read_output() {
    if (given_.sends == "rendezvous") request_.sends = schedule::SendMode::Rendezvous;
    if (given_.sends != "rendezvous" && given_.sends != "buffered") {
      const std::string close = nearest(given_.sends, {"buffered", "rendezvous"});
      reader_.add({"--sends", given_.sends, "must be buffered or rendezvous", close});
    }
    const std::tuple<const char*, bool, SimulateOutput> wanted[] = {
        {"--summary", given_.summary, SimulateOutput::Summary},
        {"--json", given_.json, SimulateOutput::Json},
        {"--csv", given_.csv, SimulateOutput::Csv}};
    const char* taken = nullptr;
    for (const auto& [key, given, output] : wanted) {
      if (!given) continue;
      if (taken != nullptr) reader_.add({key, "", cat("cannot be had together with ", taken), ""});
      taken = key;
      request_.output = output;
    }
    request_.svg = given_.svg;
    request_.trace = given_.trace;
    refuse_own_input("--svg", given_.svg);
    refuse_own_input("--trace", given_.trace);
  }

  void refuse_own_input(const char* key, const std::string& out) {
    if (out.empty() || path_kind(out) != PathKind::File) return;
    for (const NamedSchedule& named : names_) {
      if (!is_file(named) || path_kind(table_path(named)) != PathKind::File) continue;
      if (resolved_path(table_path(named)) != resolved_path(out)) continue;
      reader_.add({key, out, cat("must not replace the schedule that ", named.key, " names"), ""});
    }
  }

  void make() {
    for (auto& schedule : make_schedules(names_, wanted_, numbers_, reader_)) {
      if (!schedule) continue;
      const size_t times = request_.cost.stages.size();
      if (times > 0 && static_cast<int>(times) != schedule->num_stages) {
        const std::string rule =
            cat("has ", counted(times, "stage"), ", ", schedule->name, " has ", schedule->num_stages);
        reader_.add({"--stage-times", given_.stage_times, rule, ""});
      }
      request_.schedules.push_back(std::move(*schedule));
    }
  }

  const SimulateOptions& given_;
  OptionReader reader_;
  std::vector<NamedSchedule> names_;
  ScheduleRequest wanted_;
  Numbers numbers_ = Numbers::Good;
  SimulateRequest request_;
};

void add_options(CLI::App& app, SimulateOptions& given) {
  app.allow_extras();
  app.add_option("--schedule", given.schedule, cat("file:PATH, an action table, or ", joined(schedule_names())));
  app.add_option("--ranks", given.ranks, "pipeline ranks");
  app.add_option("--microbatches", given.microbatches, "microbatches of a step");
  app.add_option("--chunks", given.chunks, "stages per rank, where the schedule leaves the choice");
  app.add_option("--group", given.group, "microbatches that pass a chunk before the next (interleaved ones)");
  app.add_option("--compare", given.compare, "more schedules, side by side: a,b; all run the same model");
  app.add_option("--forward", given.forward,
                 "time of a forward pass on one stage, of a comparison on all of a rank (1)");
  app.add_option("--input-grad", given.input_grad, "time of an input-gradient pass (1)");
  app.add_option("--weight-grad", given.weight_grad, "time of a weight-gradient pass (1)");
  app.add_option("--overlapped", given.overlapped, "time of a fused forward and backward (their sum)");
  app.add_option("--recompute", given.recompute, "time of a recompute (a forward's)");
  app.add_option("--update", given.update, "time of the optimizer's update of a stage (0)");
  app.add_option("--transfer", given.transfer, "latency of a transfer between ranks (0)");
  app.add_option("--activation", given.activation, "size of a microbatch on a stage before its input gradient (1)");
  app.add_option("--pending", given.pending, "and after it, until its weight gradient (0.5)");
  app.add_option("--stage-times", given.stage_times,
                 "file of times: a line per stage, forward input_grad weight_grad [recompute [update]]");
  app.add_option("--sends", given.sends, "buffered (a send waits for nothing) or rendezvous (for its receive)");
  app.add_option("--svg", given.svg, "draw the timelines into this file")->check(output_name());
  app.add_option("--trace", given.trace, "write them as a trace for Perfetto, a unit being a second")
      ->check(output_name());
  app.add_option("--width", given.width, "columns of the grid; 0: all (the terminal's, or 160)");
  app.add_flag("--summary", given.summary, "the numbers alone, for schedules of millions of actions");
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
  SimulateOptions given;
  add_options(app, given);
  if (parse_words(app, words)) return std::nullopt;
  Reading reading(given);
  reading.refuse_unknown(app.remaining(), option_names(app));
  return reading.request();
}

}  // namespace braid::cli
