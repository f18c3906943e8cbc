// Reads the options of braid plan. Faults of options, cluster and run are reported in one message.
#include "braid/cli/plan_request.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/plan/cluster_file.h"
#include "braid/plan/cluster_presets.h"
#include "braid/plan/layout_space.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/parse.h"
#include "braid/spec/suggested_key.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::cli {
namespace {

// Returns the layout's key that `key` means: it is misspelt, or it is another program's name (peer_names.h).
std::string meant_layout_key(const std::string& key) {
  const std::string meant = spec::suggested_key(key);
  return std::ranges::find(plan::layout_keys(), meant) != plan::layout_keys().end() ? meant
                                                                                    : nearest(key, plan::layout_keys());
}

// The values of options, as the user gave them.
struct PlanOptions {
  std::string file, cluster, calibrate, svg, formulas = "braid";
  std::vector<std::string> pins, overrides;
  int nodes = 0, top = 5, tried = 0;
  bool fixed = false, compare = false, json = false;
};

class PlanReading {
 public:
  explicit PlanReading(const PlanOptions& given) : given_(given) {}

  PlanRequest request() {
    request_.what = given_.compare ? PlanTarget::Comparison : given_.fixed ? PlanTarget::Fixed : PlanTarget::Best;
    request_.output = given_.json ? PlanOutput::Json : PlanOutput::Text;
    request_.formulas = value_of<plan::FormulaSet>(given_.formulas).value();
    request_.top = std::max(given_.top, given_.tried);
    request_.tried = given_.tried;
    request_.svg = given_.svg;
    refuse_own_input();
    collect_problems(problems_, [&] { read_pins(); });
    collect_problems(problems_, [&] { read_cluster(); });
    collect_problems(problems_, [&] { read_the_run(); });
    if (problems_.empty()) judge_both();
    throw_problems(std::move(problems_));
    return std::move(request_);
  }

 private:
  // Refuses a picture in place of a file that the command reads.
  void refuse_own_input() {
    if (given_.svg.empty() || path_kind(given_.svg) != PathKind::File) return;
    for (const std::string& read : {given_.file, given_.cluster}) {
      if (path_kind(read) != PathKind::File || resolved_path(read) != resolved_path(given_.svg)) continue;
      problems_.push_back({"--svg", given_.svg, "must not replace a file that the command reads", ""});
    }
  }

  // Reads the pins. "mesh.tensor=8" is also an override; "mesh.tensor" keeps the run's value.
  void read_pins() {
    for (const std::string& pin : given_.pins) {
      const std::string key = pin.substr(0, pin.find('='));
      if (!request_.pinned.insert(key).second) problems_.push_back({"--pin", key, "must be given once", ""});
      if (key != pin) request_.pin_words.push_back(pin);
      if (std::ranges::find(plan::layout_keys(), key) != plan::layout_keys().end()) continue;
      problems_.push_back(
          {"--pin", key, "must be a key that a layout varies: " + joined(plan::layout_keys()), meant_layout_key(key)});
    }
    overrides_ = given_.overrides;
    overrides_.insert(overrides_.end(), request_.pin_words.begin(), request_.pin_words.end());
  }

  void read_cluster() {
    if (given_.cluster.empty()) {
      throw ConfigError(
          {{"--cluster", "", "must be given: a file, or one of " + joined(plan::cluster_preset_names()), ""}});
    }
    request_.cluster = plan::load_cluster(given_.cluster, "--cluster");
    if (given_.nodes > 0) request_.cluster = plan::with_nodes(request_.cluster, given_.nodes, "--nodes");
  }

  void read_the_run() {
    if (given_.file.empty()) throw ConfigError({{"FILE", "", "must be given: the run as TOML", ""}});
    spec::ParseOptions options(spec::any_hosts(spec::Purpose::Plan));
    if (request_.what == PlanTarget::Best) options.open = searched_keys();
    request_.run = spec::read_run(given_.file, overrides_, options);
    take_vocab_of_bytes(request_.run);
  }

  std::set<std::string> searched_keys() const {
    std::set<std::string> keys(plan::layout_keys().begin(), plan::layout_keys().end());
    for (const std::string& key : request_.pinned) keys.erase(key);
    return keys;
  }

  void judge_both() {
    problems_ = plan::prediction_problems(request_.run, request_.cluster);
    if (request_.what != PlanTarget::Fixed) return;  // only a fixed layout uses the mesh that the run names
    std::ranges::move(plan::mesh_problems(request_.run, request_.cluster), std::back_inserter(problems_));
  }

  const PlanOptions& given_;
  PlanRequest request_;
  std::vector<std::string> overrides_;
  std::vector<Problem> problems_;
};

}  // namespace

void take_vocab_of_bytes(RunSpec& run) {
  const bool bytes = run.data.tokenizer == kByteTokenizer;
  if (bytes && run.model.vocab == 0) run.model.vocab = tokenize::byte_tokenizer()->vocab();
}

std::optional<PlanRequest> plan_request(const Words& words) {
  CLI::App app(
      "Foresees what a run takes and holds on a cluster, and finds the layouts that are fastest. Neither the devices "
      "nor the data need be there. Words "
      "after the file override its keys.",
      "braid plan");
  PlanOptions given;
  add_run_file(app, given.file);
  app.add_option("--cluster", given.cluster, "a cluster file, or " + joined(plan::cluster_preset_names()));
  app.add_option("--nodes", given.nodes, "nodes, in place of the cluster's")->check(whole_number(1, 1 << 20));
  auto* fixed = app.add_flag("--fixed", given.fixed, "only the layout that the run names");
  auto* compare = app.add_flag("--compare", given.compare,
                               "what data and model parallelism each copy, split and send, on all devices");
  app.add_option("--top", given.top, "how many layouts are shown")->check(whole_number(1, 1000))->capture_default_str();
  app.add_option("--pin", given.pins, "KEY or KEY=VALUE: a key of the layout that is not varied")
      ->allow_extra_args(false);
  auto* formulas =
      app.add_option("--as", given.formulas,
                     "whose arithmetic: braid; megatron as its papers measured it; torchtitan of December 2024, eager, "
                     "compiled, or with asynchronous tensor parallelism")
          ->check(one_of({kWords<plan::FormulaSet>.begin(), kWords<plan::FormulaSet>.end()}))
          ->capture_default_str();
  auto* json = app.add_flag("--json", given.json, "as one JSON object");
  app.add_option("--svg", given.svg, "draw the predicted step of the layout that --fixed names into this file")
      ->check(output_name())
      ->needs(fixed);
  compare->excludes(fixed)->excludes(json)->excludes(formulas);
#ifdef BRAID_TORCH
  app.add_option("--try", given.tried, "run the first so many layouts here for some steps, beside what was predicted")
      ->check(whole_number(1, 1000));
  auto* calibrate =
      app.add_option("--calibrate", given.calibrate, "measure this host into a cluster file, and plan nothing");
#endif
  add_overrides(app, given.overrides);
#ifdef BRAID_TORCH
  for (CLI::Option* other : app.get_options()) {
    if (other != calibrate && other != app.get_help_ptr()) calibrate->excludes(other);
  }
#endif
  if (parse_words(app, words)) return std::nullopt;
  if (given.calibrate.empty()) return PlanReading(given).request();
  PlanRequest request;
  request.calibrate = given.calibrate;
  return request;
}

}  // namespace braid::cli
