// braid verify: proves that a run's layout computes what the same run computes on one rank.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/torch/resumed_checkpoint.h"
#include "braid/spec/parse.h"
#include "braid/spec/partition.h"
#include "braid/train/run_data.h"
#include "braid/train/step_schedule.h"
#include "braid/verify/all_layouts.h"
#include "braid/verify/serial_run.h"
#include "braid/verify/shrunk_run.h"
#include "braid/verify/verify_layout.h"

namespace braid::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kEqual = 0, kDifferent = 1;
constexpr int kMostSteps = 1000, kMostComparedRanks = 1024;
constexpr double kSecondsPerMinute = 60;
constexpr const char* kSharedKernels =
    "The reference shares its kernels with the run: a fault that both have is not found.";

using verify::RunSize;
enum class VerdictForm { Table, Json };
enum class NumberType { Float64, OfRun };

struct VerifyRequest {
  std::string file;
  std::vector<std::string> overrides;
  int steps = 2;
  RunSize size = RunSize::Whole;
  NumberType type = NumberType::Float64;
  VerdictForm form = VerdictForm::Table;
  int all_layouts = 0;  // the number of ranks whose layouts are all verified; 0: the run's layout
  double minutes = std::numeric_limits<double>::infinity();
};

void add_verify_options(CLI::App& app, VerifyRequest& request) {
  add_run_file(app, request.file);
  add_overrides(app, request.overrides);
  app.add_option("--steps", request.steps, "steps to compare")
      ->check(whole_number(1, kMostSteps))
      ->capture_default_str();
  app.add_flag_callback(
      "--shrink", [&request] { request.size = RunSize::Shrunk; },
      "make the model small, keep the layout, and take made-up tokens in place of data.paths");
  app.add_flag_callback(
      "--own-dtype", [&request] { request.type = NumberType::OfRun; }, "compute in train.dtype, not in float64");
  auto* const all =
      app.add_option("--all-layouts", request.all_layouts,
                     "verify every mesh and schedule of N ranks that keeps what is trained, cheapest first")
          ->check(whole_number(1, kMostComparedRanks));
  app.add_option("--minutes", request.minutes, "begin no further layout after this time; the first is always verified")
      ->check(not_negative())
      ->needs(all);
  app.add_flag_callback(
      "--json", [&request] { request.form = VerdictForm::Json; }, "one object, in place of the table");
}

// Replaces what thread ranks on this host cannot do, or what measurements choose.
RunSpec on_threads(RunSpec run, const VerifyRequest& request) {
  run.run = {};
  run.train.device = DeviceKind::Cpu;
  if (request.type == NumberType::Float64) run.train.dtype = DType::Float64;
  // States of float64 are float64. A rounding of a gradient may change a code to the next one.
  if (request.type == NumberType::Float64 || run.optimizer.state_dtype == StateType::Int8) {
    run.optimizer.state_dtype = StateType::Float32;
  }
  if (spec::is_measured(run.pipeline)) run.pipeline.partition = PipelineSpec().partition;
  return run;
}

RunSpec given_run(const VerifyRequest& request) {
  spec::ParseOptions options(spec::any_hosts());
  set_defaults_of_weights(options);
  std::vector<std::string> overrides = request.overrides;
  if (request.size == RunSize::Shrunk) overrides.insert(overrides.end(), {"data.paths=[synthetic]", "data.weights=[]"});
  RunSpec run = on_threads(spec::read_run(request.file, overrides, options), request);
  throw_problems(verify::changed_semantics(run));
  return run;
}

// The runs to verify and their text. Shrunk runs have one each.
class Verification {
 public:
  explicit Verification(const VerifyRequest& request) : request_(request), run_(given_run(request)) {
    if (request.size == RunSize::Shrunk) return;
    data_.emplace(run_.data);
    run_ = data_->resolved(run_);
    corpus_ = data_->corpus(run_);
  }

  // Returns the layout of the run itself.
  RunSpec own() const {
    RunSpec run = request_.size == RunSize::Shrunk ? verify::shrunk(run_) : run_;
    throw_problems(spec::problems(run, spec::any_hosts()));
    train::refuse_faulty_schedule(run);
    return run;
  }
  std::vector<RunSpec> all() const { return verify::all_layouts(run_, request_.all_layouts, request_.size); }

  verify::Verdict verdict_on(const RunSpec& run) const {
    const verify::VerifyOptions options{request_.steps};
    if (corpus_) return verify::verify_layout(run, *corpus_, options);
    return verify::verify_layout(run, verify::synthetic_corpus(run, request_.steps), options);
  }

 private:
  const VerifyRequest& request_;
  RunSpec run_;
  std::optional<train::RunData> data_;
  std::optional<data::Corpus> corpus_;
};

std::string layout_text(const RunSpec& run) {
  const MeshSpec& mesh = run.mesh;
  std::string text = cat(counted(spec::num_world_ranks(run), "rank"), ": data ", mesh.data, " x pipe ", mesh.pipe,
                         " x tensor ", mesh.tensor);
  if (mesh.context > 1) text += cat(" x context ", mesh.context, " (", mesh.context_parallel);
  if (mesh.ulysses_ranks > 0) text += cat(" of ", mesh.ulysses_ranks);
  if (mesh.context > 1) text += ")";
  if (mesh.sequence_parallel) text += ", sequence parallel";
  if (mesh.pipe > 1) text += cat(", ", run.pipeline.schedule);
  if (run.sync.zero > 0) text += cat(", ZeRO ", run.sync.zero);
  if (run.memory.recompute != "none") text += cat(", recompute ", run.memory.recompute);
  return text;
}

std::string scientific(double value) {
  std::ostringstream out;
  out << std::scientific << std::setprecision(1) << value;
  return out.str();
}

std::string rank_text(const std::vector<int>& ranks) {
  std::vector<std::string> words;
  for (const int rank : ranks) words.push_back(cat(rank));
  return cat(noun_of(ranks.size(), "rank"), " ", joined(words));
}

void print_rows(const std::vector<verify::Row>& rows) {
  size_t width = 6;
  for (const verify::Row& row : rows) width = std::max(width, row.tensor.size());
  const auto line = [&](const auto& phase, const auto& tensor, const auto& difference, const auto& bound) {
    std::cout << std::left << std::setw(17) << phase << std::setw(static_cast<int>(width) + 2) << tensor << std::right
              << std::setw(13) << difference << std::setw(13) << bound;
  };
  line("phase", "tensor", "difference", "rounding"), std::cout << "\n";
  for (const verify::Row& row : rows) {
    line(word(row.phase), row.tensor, row.same_bits ? "-" : scientific(row.relative), scientific(row.bound));
    std::cout << (row.same_bits ? "  bitwise equal" : row.equal ? "" : "  DIFFERENT") << "\n";
  }
}

std::string divergence_text(const verify::Divergence& first) {
  if (first.ranks.empty())
    return cat("first in step ", first.step, ", ", word(first.phase), ": no rank holds all of ", first.tensor);
  return cat("first in step ", first.step, ", ", word(first.phase), ": ", first.op, ", ", first.tensor, ", on ",
             rank_text(first.ranks), ": ", scientific(first.relative), " where rounding explains ",
             scientific(first.bound));
}

std::string reference_of(const RunSpec& run) {
  return verify::replayed(run) == verify::Replayed::Nothing ? "the run on one rank"
                                                            : "a serial program of the training";
}

void print_verdict(const RunSpec& run, const verify::Verdict& verdict) {
  std::cout << layout_text(run) << "\n"
            << counted(run.model.layers, "layer") << " of width " << run.model.width << ", "
            << counted(run.train.batch, "sequence") << " of " << run.model.context << " tokens, "
            << word(run.train.dtype) << ", " << counted(verdict.steps, "step") << "\n\n";
  print_rows(verdict.rows);
  std::cout << "\n";
  if (verdict.first_divergence) {
    std::cout << "DIFFERENT from " << reference_of(run) << ", " << divergence_text(*verdict.first_divergence) << "\n";
  } else if (verdict.same_bits()) {
    std::cout << "bitwise equal to " << reference_of(run) << "\n";
  } else {
    std::cout << "equal to " << reference_of(run) << " up to rounding: the largest relative difference is "
              << scientific(verdict.max_relative()) << "\n";
  }
  std::cout << kSharedKernels << "\n" << fixed(verdict.seconds, 1) << " s" << std::endl;
}

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json("infinite"); }

Json json_of(const verify::Divergence& first) {
  return {{"step", first.step},
          {"phase", word(first.phase)},
          {"op", first.op},
          {"tensor", first.tensor},
          {"rank", first.ranks.empty() ? Json(nullptr) : Json(first.ranks.front())},
          {"ranks", first.ranks}};
}

Json summary_of(const verify::Verdict& verdict) {
  return {{"verdict", verdict.first_divergence ? "different" : "equal"},
          {"steps", verdict.steps},
          {"max_relative_difference", number(verdict.max_relative())},
          {"first_divergence", verdict.first_divergence ? json_of(*verdict.first_divergence) : Json(nullptr)}};
}

Json json_of(const verify::Verdict& verdict) {
  Json tensors = Json::array();
  for (const verify::Row& row : verdict.rows) {
    tensors.push_back({{"tensor", row.tensor},
                       {"phase", word(row.phase)},
                       {"max_relative_difference", number(row.relative)},
                       {"bound", number(row.bound)},
                       {"bitwise_equal", row.same_bits},
                       {"equal", row.equal}});
  }
  Json json = summary_of(verdict);
  json["tensors"] = tensors;
  json["reference_shares_kernels"] = true;
  return json;
}

int verify_own(const Verification& verification, VerdictForm form) {
  const RunSpec run = verification.own();
  const verify::Verdict verdict = verification.verdict_on(run);
  form == VerdictForm::Json ? void(std::cout << json_of(verdict).dump() << std::endl) : print_verdict(run, verdict);
  return verdict.first_divergence ? kDifferent : kEqual;
}

void print_layout(const std::string& layout, const verify::Verdict& verdict) {
  std::cout << (verdict.first_divergence ? "DIFFERENT  " : "equal  ") << layout << "  "
            << scientific(verdict.max_relative()) << "  " << fixed(verdict.seconds, 1) << " s\n";
  if (verdict.first_divergence) std::cout << "  " << divergence_text(*verdict.first_divergence) << "\n";
  std::cout << std::flush;
}

int verify_all(const Verification& verification, const VerifyRequest& request) {
  const std::vector<RunSpec> layouts = verification.all();
  if (layouts.empty()) {
    throw ConfigError({{"--all-layouts", cat(request.all_layouts), "no layout of so many ranks can be trained", ""}});
  }
  const double begin = now_seconds(), seconds = request.minutes * kSecondsPerMinute;
  const bool prints = request.form == VerdictForm::Table;
  Json rows = Json::array();
  size_t num_different = 0;
  for (const RunSpec& run : layouts) {
    if (!rows.empty() && now_seconds() - begin > seconds) break;
    const verify::Verdict verdict = verification.verdict_on(run);
    if (verdict.first_divergence) ++num_different;
    if (prints) print_layout(layout_text(run), verdict);
    rows.push_back(summary_of(verdict));
    rows.back()["layout"] = layout_text(run);
  }
  if (prints) {
    std::cout << counted(rows.size(), "layout") << " of " << layouts.size() << " verified, " << num_different
              << " different\n"
              << kSharedKernels << std::endl;
  } else {
    const Json all{{"verdict", num_different > 0 ? "different" : "equal"},
                   {"num_layouts", layouts.size()},
                   {"layouts", rows},
                   {"reference_shares_kernels", true}};
    std::cout << all.dump() << std::endl;
  }
  return num_different > 0 ? kDifferent : kEqual;
}

}  // namespace

int verify_command(const Words& words) {
  CLI::App app(
      "Trains a run's layout on threads of this process beside the same run on one rank, and compares every value, "
      "gradient and parameter. Words after the file override its keys. Exits with 0 if they are equal up to rounding, "
      "with 1 if not, and with 2 if the input is wrong or no run on one rank trains the same.",
      "braid verify");
  VerifyRequest request;
  add_verify_options(app, request);
  if (const auto code = parse_words(app, words)) return *code;
  if (request.file.empty()) throw ConfigError({{"FILE", "", "must be given: the run as TOML", ""}});
  const Verification verification(request);
  return request.all_layouts > 0 ? verify_all(verification, request) : verify_own(verification, request.form);
}

}  // namespace braid::cli
