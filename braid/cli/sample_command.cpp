// braid sample: text from a checkpoint.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <limits>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/named_checkpoint.h"
#include "braid/cli/option_rules.h"
#include "braid/train/generate.h"
#include "braid/train/resume.h"

namespace braid {
namespace {

constexpr int kMaxThreads = 256, kMost = std::numeric_limits<int>::max();
constexpr size_t kMostOfPrompt = 16 << 20;  // bytes, far above any model's context
constexpr size_t kMostOfFault = 20'000;     // bytes shown
constexpr const char* kStandardInput = "-";

struct SampleRequest {
  std::string checkpoint;
  GenerateOptions options;
};

void add_sample_options(CLI::App& app, SampleRequest& request) {
  GenerateOptions& options = request.options;
  app.add_option("CHECKPOINT", request.checkpoint,
                 "a folder that braid train wrote, such as runs/quickstart/step-420; of a run's, the newest in it")
      ->required();
  app.add_option("--prompt", options.prompt,
                 "text to continue; - reads it from standard input; without it, a document starts");
  app.add_option("--tokens", options.num_tokens, "tokens to generate at most")
      ->check(whole_number(1, kMost))
      ->capture_default_str();
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
  app.add_option("--threads", options.threads, "0: as many as suit the model")
      ->check(whole_number(0, kMaxThreads))
      ->capture_default_str();
  app.add_option("--tokenizer", options.tokenizer,
                 "bytes, a tokenizer.json, or a folder with it, in place of the checkpoint's own");
}

// As it is: a last line break is part of the prompt. A stream would take an error for the end.
std::string standard_input() {
  std::string text(kMostOfPrompt + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(STDIN_FILENO, text.data() + size, text.size() - size);
    if (got == 0) break;
    if (got < 0 && errno != EINTR) throw IoError("standard input", -1, cat("cannot be read: ", std::strerror(errno)));
    if (got > 0) size += static_cast<size_t>(got);
  }
  text.resize(size);
  if (text.size() > kMostOfPrompt) {
    throw ConfigError({{"--prompt", kStandardInput, cat("must be at most ", kMostOfPrompt, " bytes"), ""}});
  }
  return text;
}

// The configuration's key for a tokenizer is this command's option.
[[noreturn]] void throw_with_option(const ConfigError& error) {
  std::vector<Problem> problems = error.problems();
  for (Problem& problem : problems) {
    if (problem.key == "data.tokenizer") problem.key = "--tokenizer";
  }
  throw ConfigError(std::move(problems));
}

// As the run that wrote the checkpoint started its ranks.
RanksAs saved_ranks(const std::string& directory) {
  const CheckpointInfo info = read_checkpoint_info(directory);
  return info.config_toml.empty() ? RanksAs::Threads : saved_spec(info, directory).run.ranks;
}

// Shows the continuation as it comes, and returns it.
std::string shown_continuation(const std::string& directory, const GenerateOptions& options) {
  WholeCharacters text;
  std::string prompt = text.add(options.prompt);  // shown when there is something behind it
  return generate(directory, options, [&](const std::string& piece) {
    if (!piece.empty()) std::cout << std::exchange(prompt, "") << text.add(piece) << std::flush;
  });
}

// What is not shown yet. The continuation may have been shown by another process, so all is put together anew.
std::string rest(const std::string& prompt, const std::string& continuation) {
  WholeCharacters text;
  const std::string begin = text.add(prompt);
  text.add(continuation);
  return (continuation.empty() ? begin : "") + text.end();
}

}  // namespace

int sample_command(const Words& words) {
  CLI::App app("Continues a prompt with the weights of a checkpoint.", "braid sample");
  SampleRequest request;
  add_sample_options(app, request);
  if (const auto code = parse_words(app, words)) return *code;
  GenerateOptions& options = request.options;

  const CheckpointName name{"CHECKPOINT", request.checkpoint, request.checkpoint};
  const std::string directory = named_checkpoint(name, [](const std::string& fault) {
    std::cerr << "braid: passed over " << printable(fault, kMostOfFault) << "\n";
  });
  if (options.prompt == kStandardInput) options.prompt = standard_input();
  try {
    options.ranks = saved_ranks(directory);
    const std::string continuation = shown_continuation(directory, options);
    std::cout << rest(options.prompt, continuation) << std::endl;
  } catch (const ConfigError& error) {
    if (options.tokenizer.empty()) throw;
    throw_with_option(error);
  }
  return 0;
}

}  // namespace braid
