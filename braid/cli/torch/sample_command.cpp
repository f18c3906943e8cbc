// braid sample: generates text from a checkpoint.
#include <CLI/CLI.hpp>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/base/word.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/terminal.h"
#include "braid/cli/torch/model_options.h"
#include "braid/cli/torch/sample_prompts.h"
#include "braid/report/metrics_file.h"
#include "braid/train/generate.h"
#include "braid/train/loaded_model.h"

namespace braid::cli {
namespace {

enum class SampleForm { Text, JsonLines };

// Prints the texts of braid sample. A single text is printed while it is generated. Several texts, or lines of JSON,
// are printed as each text ends. The callbacks of listener() may run in another process; show_rest() then does not know
// what they have printed.
class SamplePrinter {
 public:
  // REQUIRES: `prompts` outlives this.
  SamplePrinter(const std::vector<std::string>& prompts, int num_samples, SampleForm form);

  train::GenerationListener listener();
  // Prints the rest of a single text. Does nothing for other output.
  void show_rest(const train::Generation& made) const;

 private:
  bool streams() const { return form_ == SampleForm::Text && prompts_.size() == 1 && num_samples_ == 1; }
  void show_piece(const std::string& piece);
  void show_text(const train::GeneratedText& text) const;
  void show_line(const train::GeneratedText& text) const;

  const std::vector<std::string>& prompts_;
  int num_samples_;
  SampleForm form_;
  WholeCharacters shown_;
  std::string prompt_;  // prompt that has not been printed yet
};

SamplePrinter::SamplePrinter(const std::vector<std::string>& prompts, int num_samples, SampleForm form)
    : prompts_(prompts), num_samples_(num_samples), form_(form) {
  if (streams()) prompt_ = shown_.add(prompts_[0]);  // printed together with the first generated piece
}

train::GenerationListener SamplePrinter::listener() {
  if (streams()) return {[this](const std::string& piece) { show_piece(piece); }, nullptr};
  return {nullptr, [this](const train::GeneratedText& text) {
            form_ == SampleForm::JsonLines ? show_line(text) : show_text(text);
          }};
}

void SamplePrinter::show_piece(const std::string& piece) {
  std::cout << shown_on_stdout(std::exchange(prompt_, "") + shown_.add(piece)) << std::flush;
}

// Another process may have printed the continuation, so the text is put together again without `shown_`.
void SamplePrinter::show_rest(const train::Generation& made) const {
  if (!streams()) return;
  WholeCharacters text;
  const std::string begin = text.add(prompts_[0]), &continuation = made.texts.at(0).text;
  text.add(continuation);
  std::cout << shown_on_stdout((continuation.empty() ? begin : "") + text.end()) << std::endl;
}

void SamplePrinter::show_text(const train::GeneratedText& text) const {
  std::cout << "=== prompt " << text.prompt + 1 << " of " << prompts_.size();
  if (num_samples_ > 1) std::cout << ", sample " << text.sample + 1 << " of " << num_samples_;
  std::cout << " (" << word(text.end) << ")\n"
            << shown_on_stdout(whole_characters(prompts_[static_cast<size_t>(text.prompt)] + text.text)) << "\n"
            << std::endl;
}

void SamplePrinter::show_line(const train::GeneratedText& text) const {
  report::MetricsLine line;
  line.add("prompt", whole_characters(prompts_[static_cast<size_t>(text.prompt)]));
  line.add("text", whole_characters(text.text)).add("tokens", text.tokens).add("reason", word(text.end));
  line.add("logprob", text.log_probability).add("prompt_index", text.prompt).add("sample", text.sample);
  std::cout << line.text() << std::endl;
}

constexpr int kMost = std::numeric_limits<int>::max(), kMostTexts = 4096;  // kMostTexts: texts generated at once

enum class Speed { Untold, Printed };

struct SampleRequest {
  ModelOptions model;
  std::vector<std::string> mesh_words;
  PromptWords prompts;
  train::GenerateOptions options;
  SampleForm form = SampleForm::Text;
  Speed speed = Speed::Untold;
};

void add_prompt_options(CLI::App& app, SampleRequest& request) {
  add_checkpoint(app, request.model);
  app.add_option("MESH", request.mesh_words, kMeshWords)->option_text(kOverride);
  app.add_option("--prompt", request.prompts.given,
                 "text to continue; - reads it from standard input; without any, a document starts; repeatable")
      ->allow_extra_args(false);
  app.add_option("--prompts", request.prompts.file,
                 "a file with a prompt on each line; of .jsonl, in the string \"prompt\"");
  app.add_option("--num-samples", request.options.num_samples, "texts for each prompt")
      ->check(whole_number(1, kMost))
      ->capture_default_str();
}

void add_choice_options(CLI::App& app, train::GenerateOptions& options) {
  app.add_option("--tokens", options.num_tokens, "tokens to generate at most, for each text")
      ->check(whole_number(1, kMost))
      ->capture_default_str();
  app.add_option("--stop", options.stops, "the text ends before this; repeatable")
      ->allow_extra_args(false)
      ->check(not_empty());
  app.add_option("--temperature", options.temperature, "0: always the most likely token")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--top-k", options.top_k, "choose among the k most likely tokens; 0: among all")
      ->check(whole_number(0, kMost))
      ->capture_default_str();
  app.add_option("--top-p", options.top_p,
                 "choose among the most likely tokens that have this probability together; 1: among all")
      ->check(share())
      ->capture_default_str();
  app.add_option("--seed", options.seed, "the same seed gives the same text")
      ->check(natural_number())
      ->capture_default_str();
}

void add_computing_options(CLI::App& app, SampleRequest& request) {
  train::GenerateOptions& options = request.options;
  app.add_flag_callback(
      "--greedy", [] {}, "always the most likely token, as --temperature 0");
  app.add_option("--batch", options.batch, "texts generated at once")
      ->check(whole_number(1, kMostTexts))
      ->capture_default_str();
  add_model_options(app, request.model);
  app.add_flag_callback(
      "--json", [&request] { request.form = SampleForm::JsonLines; }, "a line of JSON for each text, as it ends");
  app.add_flag_callback(
      "--speed", [&request] { request.speed = Speed::Printed; }, "tokens per second at the end, on standard error");
}

void take_mesh(SampleRequest& request) {
  take_mesh_words(request.mesh_words, request.model);
  std::vector<Problem> found;
  for (const std::string& word : request.mesh_words)
    found.push_back({word, "", "must be mesh.pipe=N or mesh.tensor=N", ""});
  if (!found.empty()) throw ConfigError(std::move(found));
  request.options.pipe = request.model.pipe, request.options.tensor = request.model.tensor;
}

void refuse_two_temperatures(const CLI::App& app, const SampleRequest& request) {
  if (app.count("--greedy") == 0 || app.count("--temperature") == 0) return;
  throw ConfigError({{"--temperature", exact(request.options.temperature), "must be left out beside --greedy", ""}});
}

// Throws the error with this command's option in place of the configuration's key for the tokenizer.
[[noreturn]] void throw_with_option(const ConfigError& error) {
  std::vector<Problem> problems = error.problems();
  for (Problem& problem : problems) {
    if (problem.key == "data.tokenizer" && problem.place.empty()) problem.key = "--tokenizer";
  }
  throw ConfigError(std::move(problems));
}

void print_speed(const train::GenerationSpeed& speed) {
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? fixed(static_cast<double>(tokens) / seconds, 1) : std::string("-");
  };
  std::cerr << "read " << counted(speed.prompt_tokens, "token") << ", "
            << rate(speed.prompt_tokens, speed.prompt_seconds) << " tokens/s; then took " << speed.new_tokens
            << " one by one, " << rate(speed.new_tokens, speed.new_seconds) << " tokens/s" << std::endl;
}

void show_texts(const std::string& directory, SampleRequest& request) {
  const std::vector<std::string> prompts = read_prompts(request.prompts);
  if (prompts.size() > static_cast<size_t>(kMost / request.options.num_samples)) {
    throw ConfigError(
        {{"--num-samples", cat(request.options.num_samples),
          cat("must be such that there are at most ", kMost, " texts of ", counted(prompts.size(), "prompt")), ""}});
  }
  request.options.ranks = train::saved_ranks(directory);
  SamplePrinter printer(prompts, request.options.num_samples, request.form);
  const train::Generation made = train::generate_all(directory, prompts, request.options, printer.listener());
  printer.show_rest(made);
  if (request.speed == Speed::Printed) print_speed(made.speed);
}

}  // namespace

int sample_command(const Words& words) {
  CLI::App app("Continues prompts with the weights of a checkpoint.", "braid sample");
  SampleRequest request;
  add_prompt_options(app, request);
  add_choice_options(app, request.options);
  add_computing_options(app, request);
  if (const auto code = parse_words(app, words)) return *code;
  refuse_two_temperatures(app, request);
  take_mesh(request);
  if (app.count("--greedy") > 0) request.options.temperature = 0;
  request.options.threads = request.model.threads;
  request.options.tokenizer = request.model.tokenizer;
  request.options.dtype = request.model.chosen_dtype();
  const std::string directory = checkpoint_directory(request.model);
  try {
    show_texts(directory, request);
  } catch (const ConfigError& error) {
    throw_with_option(error);
  }
  return 0;
}

}  // namespace braid::cli
