// braid evaluate: measures how well a checkpoint's model predicts text.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/terminal.h"
#include "braid/cli/torch/model_options.h"
#include "braid/report/metrics_file.h"
#include "braid/report/progress.h"
#include "braid/tokenize/document_list.h"
#include "braid/train/loaded_model.h"
#include "braid/train/text_loss.h"

namespace braid::cli {
namespace {

constexpr int kLongestStride = std::numeric_limits<int>::max(), kMostWindows = 4096;
constexpr size_t kMostOfText = 200;  // bytes shown of a text's name
constexpr double kBarEverySeconds = 0.2, kLineEverySeconds = 2;

constexpr const char* kPathMeaning = "text files, .jsonl files, folders, prepared data";

enum class LossForm { Table, Json };

struct EvaluateRequest {
  ModelOptions model;
  std::string half;
  train::TextLossOptions options;
  LossForm form = LossForm::Table;
};

void add_evaluate_options(CLI::App& app, EvaluateRequest& request) {
  train::TextLossOptions& options = request.options;
  add_checkpoint(app, request.model);
  app.add_option("PATH", options.paths, cat(kPathMeaning, "; ", kMeshWords))->required();
  add_document_options(app, options.include, options.reading.text_field, options.reading.bad_lines);
  app.add_option("--part", request.half,
                 "held-out or train: of prepared data; where none is given, what is held out, if anything is")
      ->check(one_of({"held-out", "train"}));
  app.add_option("--context", options.context,
                 "tokens of a window, more than in training only with rotary positions; 0: the model's context")
      ->check(whole_number(0, kLongestStride))
      ->capture_default_str();
  app.add_option("--stride", options.stride,
                 "tokens from window to window, of which the new ones count; 0: the context")
      ->check(whole_number(0, kLongestStride))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "windows in one forward pass")
      ->check(whole_number(1, kMostWindows))
      ->capture_default_str();
  add_model_options(app, request.model);
  app.add_flag_callback(
      "--json", [&request] { request.form = LossForm::Json; }, "one object, in place of the table");
}

// Shows progress. If a table is printed to a terminal, this is a bar in the last line, otherwise lines on standard
// error.
class EvaluateProgress {
 public:
  explicit EvaluateProgress(LossForm form)
      : has_bar_(form == LossForm::Table && stdout_is_interactive()), begin_(now_seconds()), last_(begin_) {}

  void show(const train::TextLossStatus& status) {
    const double now = now_seconds();
    if (now - last_ < (has_bar_ ? kBarEverySeconds : kLineEverySeconds)) return;
    last_ = now;
    constexpr int64_t kSteps = 1000;
    report::Progress progress;
    progress.steps = kSteps;
    progress.step = static_cast<int64_t>(status.share * kSteps);
    progress.loss = status.nats / static_cast<double>(std::max<int64_t>(1, status.tokens));
    progress.tokens_per_second = static_cast<double>(status.tokens) / (now - begin_);
    progress.seconds_per_step = (now - begin_) / std::max(1e-3, status.share) / kSteps;
    if (has_bar_) {
      std::cout << "\r\x1b[K" << report::progress_bar(progress, terminal_width() - 1) << std::flush;
    } else {
      const double left = static_cast<double>(kSteps - progress.step) * progress.seconds_per_step;
      std::cerr << cat("evaluated ", fixed(100 * status.share, 1), " %, loss ", fixed(progress.loss, 4), ", ",
                       report::duration_text(left), " left")
                << std::endl;
    }
  }
  void end() const {
    if (has_bar_) std::cout << "\r\x1b[K";
  }

 private:
  bool has_bar_;
  double begin_, last_;
};

std::string loss_text(double value) { return std::isfinite(value) ? fixed(value, 4) : "-"; }

void print_row(size_t width, const std::string& name, const train::TextLoss& loss) {
  const auto cell = [](const std::string& text) { std::cout << std::setw(13) << text; };
  std::cout << std::left << std::setw(static_cast<int>(width)) << name << std::right;
  cell(cat(loss.tokens)), cell(loss.bytes > 0 ? cat(loss.bytes) : "-"), cell(loss_text(loss.per_token())),
      cell(loss_text(loss.per_byte()));
  cell(loss_text(std::exp(loss.per_token())));
  std::cout << "\n";
}

void print_table(const std::vector<train::TextLoss>& losses) {
  size_t width = 5;
  for (const train::TextLoss& loss : losses) width = std::max(width, printable(loss.path, kMostOfText).size());
  std::cout << std::left << std::setw(static_cast<int>(width)) << "text" << std::right;
  for (const char* title : {"tokens", "bytes", "nats/token", "nats/byte", "perplexity"}) {
    std::cout << std::setw(13) << title;
  }
  std::cout << "\n";
  for (const train::TextLoss& loss : losses) print_row(width, printable(loss.path, kMostOfText), loss);
  if (losses.size() > 1) print_row(width, "total", train::total(losses));
  std::cout << std::flush;
}

report::MetricsLine json_of(const train::TextLoss& loss) {
  report::MetricsLine line;
  if (!loss.path.empty()) line.add("path", whole_characters(loss.path));
  line.add("tokens", loss.tokens).add("bytes", loss.bytes).add("loss", loss.per_token());
  return line.add("nats_per_byte", loss.per_byte()).add("perplexity", std::exp(loss.per_token()));
}

void print_json(const std::vector<train::TextLoss>& losses) {
  std::string texts;
  for (const train::TextLoss& loss : losses) texts += cat(texts.empty() ? "" : ",", json_of(loss).text());
  std::cout << "{\"texts\":[" << texts << "],\"total\":" << json_of(train::total(losses)).text() << "}" << std::endl;
}

std::vector<train::TextLoss> evaluate(const std::string& directory, EvaluateRequest& request) {
  request.options.ranks = train::saved_ranks(directory);
  EvaluateProgress progress(request.form);
  request.options.on_note = [](const std::string& sentence) { std::cerr << sentence << std::endl; };
  const auto losses = train::measure_text_loss(directory, request.options,
                                               [&](const train::TextLossStatus& status) { progress.show(status); });
  progress.end();
  return losses;
}

// Throws the error with this command's words in place of the configuration's keys for paths and tokenizer.
[[noreturn]] void throw_with_words(const ConfigError& error) {
  std::vector<Problem> problems;
  for (const Problem& problem : error.problems()) {
    const bool is_of_data = problem.key.starts_with("data."), is_tokenizer = problem.key == "data.tokenizer";
    problems.push_back(is_of_data ? tokenize::of_option(is_tokenizer ? "--tokenizer" : "PATH", problem) : problem);
  }
  throw ConfigError(std::move(problems));
}

}  // namespace

int evaluate_command(const Words& words) {
  CLI::App app("Measures the loss of a checkpoint's model on text.", "braid evaluate");
  EvaluateRequest request;
  add_evaluate_options(app, request);
  if (const auto code = parse_words(app, words)) return *code;
  take_mesh_words(request.options.paths, request.model);
  if (request.options.paths.empty()) throw ConfigError({{"PATH", "", cat("is needed; ", kPathMeaning), ""}});
  request.options.pipe = request.model.pipe, request.options.tensor = request.model.tensor;
  request.options.threads = request.model.threads;
  request.options.tokenizer = request.model.tokenizer;
  request.options.dtype = request.model.chosen_dtype();
  if (!request.half.empty()) request.options.half = value_of<train::PreparedHalf>(request.half);

  const std::string directory = checkpoint_directory(request.model);
  try {
    const auto losses = evaluate(directory, request);
    request.form == LossForm::Json ? print_json(losses) : print_table(losses);
  } catch (const ConfigError& error) {
    throw_with_words(error);
  }
  return 0;
}

}  // namespace braid::cli
