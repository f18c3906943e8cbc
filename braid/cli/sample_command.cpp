// braid sample: text from a checkpoint.
#include <CLI/CLI.hpp>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/named_checkpoint.h"
#include "braid/train/generate.h"

namespace braid {
namespace {

constexpr int kMaxThreads = 256;

std::vector<Problem> problems_of(const GenerateOptions& options) {
  std::vector<Problem> found;
  if (options.num_tokens < 1) found.push_back({"--tokens", cat(options.num_tokens), "must be at least 1", "1"});
  if (options.temperature < 0) found.push_back({"--temperature", cat(options.temperature), "must be at least 0", "0"});
  if (options.top_k < 0) found.push_back({"--top-k", cat(options.top_k), "must be at least 0 (0: all tokens)", "0"});
  if (options.threads < 0 || options.threads > kMaxThreads) {
    found.push_back({"--threads", cat(options.threads),
                     cat("must be from 0 (as many as suit the model) to ", kMaxThreads),
                     cat(options.threads < 0 ? 0 : kMaxThreads)});
  }
  return found;
}

}  // namespace

int sample_command(const Words& words) {
  CLI::App app("Continues a prompt with the weights of a checkpoint.", "braid sample");
  std::string checkpoint;
  GenerateOptions options;
  app.add_option("CHECKPOINT", checkpoint,
                 "a folder that braid train wrote, such as runs/quickstart/step-420; of a run's, the newest in it")
      ->required();
  app.add_option("--prompt", options.prompt, "text to continue; empty: start a document");
  app.add_option("--tokens", options.num_tokens, "tokens to generate")->capture_default_str();
  app.add_option("--temperature", options.temperature, "0: always the most likely token")->capture_default_str();
  app.add_option("--top-k", options.top_k, "choose among the k most likely; 0: among all")->capture_default_str();
  app.add_option("--seed", options.seed, "the same seed gives the same text")->capture_default_str();
  app.add_option("--threads", options.threads, "0: as many as suit the model")->capture_default_str();
  if (const auto code = parse_words(app, words)) return *code;

  if (auto found = problems_of(options); !found.empty()) throw ConfigError(std::move(found));

  const std::string directory = named_checkpoint({"CHECKPOINT", checkpoint, checkpoint}, [](const std::string& fault) {
    std::cerr << "braid: passed over " << fault << "\n";
  });
  std::cout << options.prompt << std::flush;
  generate(directory, options, [](const std::string& piece) { std::cout << piece << std::flush; });
  std::cout << std::endl;
  return 0;
}

}  // namespace braid
