// braid data prepare: converts text files to token files, and shows progress.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <iostream>
#include <iterator>
#include <string>

#include "braid/base/clock.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/resume_command.h"
#include "braid/cli/terminal.h"
#include "braid/report/progress.h"
#include "braid/tokenize/prepare.h"

namespace braid::cli {
namespace {

// Handles SIGINT, SIGTERM and SIGHUP while an object exists. These signals write `words` as a line on standard error,
// and end the process at once with exit code 128 + signal. A signal that was ignored when the process began stays
// ignored (nohup, background jobs of scripts). At most one object exists at a time, because a signal handler can reach
// only globals.
class SignalMessage {
 public:
  explicit SignalMessage(std::string words);
  ~SignalMessage();  // restores the earlier handlers
  SignalMessage(const SignalMessage&) = delete;

 private:
  const std::string words_;
};

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};

// These are global, because a signal handler can reach nothing else.
const std::string* last_words = nullptr;
struct sigaction endings_before[std::size(kEnding)];

void print_and_exit(int signal) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, last_words->data(), last_words->size());
  ::_exit(128 + signal);
}

SignalMessage::SignalMessage(std::string words) : words_("\n" + std::move(words) + "\n") {
  last_words = &words_;
  struct sigaction action {};
  action.sa_handler = print_and_exit;
  for (size_t i = 0; i < std::size(kEnding); ++i) {
    sigaction(kEnding[i], nullptr, &endings_before[i]);
    if (endings_before[i].sa_handler != SIG_IGN) sigaction(kEnding[i], &action, nullptr);
  }
}

SignalMessage::~SignalMessage() {
  for (size_t i = 0; i < std::size(kEnding); ++i) sigaction(kEnding[i], &endings_before[i], nullptr);
}

constexpr double kBarSeconds = 0.2, kLineSeconds = 10;
constexpr double kMegabyte = 1e6;
constexpr size_t kMostOfName = 2'000;  // bytes that are shown

class PreparePrinter {
 public:
  PreparePrinter() : interactive_(stdout_is_interactive()), begin_(now_seconds()), last_(begin_) {}

  void on_status(const tokenize::PrepareStatus& status) {
    if (!first_) first_ = status;
    const double now = now_seconds();
    if (now - last_ < (interactive_ ? kBarSeconds : kLineSeconds)) return;
    last_ = now;
    if (interactive_) {
      std::cout << "\r\x1b[K" << report::progress_bar(progress(status, now - begin_), terminal_width() - 1)
                << std::flush;
    } else {
      std::cout << line(status, now - begin_) << std::endl;
    }
  }

  void on_end(const tokenize::PrepareResult& result, const std::string& folder) {
    const std::string out = printable(folder, kMostOfName);
    if (interactive_) std::cout << "\r\x1b[K";
    if (result.was_complete)
      std::cout << out << " is finished already: nothing was left to do (braid data inspect verifies it)\n";
    const double seconds = now_seconds() - begin_;
    int64_t train = 0, validation = 0, num_files = 0, bad_lines = 0;
    for (const auto& source : result.manifest.sources) {
      bad_lines += source.bad_lines;
      for (const auto& part : source.parts) {
        train += part.train.num_tokens;
        validation += part.validation.num_tokens;
        num_files += (part.train.num_tokens > 0) + (part.validation.num_tokens > 0);
      }
    }
    if (result.first.text_bytes > 0 && !result.was_complete) {
      std::cout << "went on behind " << human_bytes(static_cast<double>(result.first.text_bytes)) << "\n";
    }
    std::cout << out << ": " << counted(result.last.num_documents, "document") << ", " << counted(train, "token")
              << " to train on, " << validation << " held out, in " << counted(num_files, "token file") << "\n";
    if (bad_lines > 0) std::cout << "skipped " << counted(bad_lines, "bad line") << "\n";
    const std::string passed_over = tokenize::sentence(result.passed_over);
    if (!passed_over.empty()) std::cout << printable(passed_over, kMostOfName) << "\n";
    if (!result.was_complete) std::cout << line(result.last, seconds) << "\n";
    std::cout << std::flush;
  }

 private:
  report::Progress progress(const tokenize::PrepareStatus& status, double seconds) const {
    report::Progress progress;
    progress.step = static_cast<int64_t>(static_cast<double>(status.text_bytes) / kMegabyte);
    progress.steps = static_cast<int64_t>(static_cast<double>(status.total_bytes) / kMegabyte);
    progress.tokens_per_second = static_cast<double>(status.num_tokens - first_->num_tokens) / seconds;
    progress.seconds_per_step = seconds / std::max(1e-9, megabytes(status));
    return progress;
  }
  // Returns the megabytes of text that this call of the command has prepared.
  double megabytes(const tokenize::PrepareStatus& status) const {
    return static_cast<double>(status.text_bytes - first_->text_bytes) / kMegabyte;
  }
  std::string line(const tokenize::PrepareStatus& status, double seconds) const {
    return cat(fixed(static_cast<double>(status.text_bytes) / kMegabyte, 1), " of ",
               fixed(static_cast<double>(status.total_bytes) / kMegabyte, 1), " MB, ",
               counted(status.num_tokens, "token"), ", ", fixed(megabytes(status) / std::max(1e-9, seconds), 1),
               " MB/s");
  }

  bool interactive_;
  double begin_, last_;
  std::optional<tokenize::PrepareStatus> first_;
};

}  // namespace

int prepare_command(const Words& words) {
  CLI::App app("Turns text into token files for training. If it is killed, the same command continues.",
               "braid data prepare");
  tokenize::PrepareRequest request;
  request.threads = std::min(num_cores(), 16);
  app.add_option("INPUT", request.inputs, "text files, .jsonl files, folders")->required();
  app.add_option("--out", request.out, "the folder to fill")->required()->check(output_name());
  app.add_option("--tokenizer", request.tokenizer, "bytes, a tokenizer.json, or a folder with it")
      ->capture_default_str();
  add_document_options(app, request.include, request.text_field, request.bad_lines);
  app.add_option("--weight", request.weights, "share of samples of an INPUT, once for each in their order")
      ->allow_extra_args(false);
  app.add_option("--validation-fraction", request.validation_fraction, "share held out")->capture_default_str();
  app.add_option("--shard-tokens", request.shard_tokens, "tokens of a file, at least")->capture_default_str();
  app.add_option("--threads", request.threads, "that encode; the result does not depend on it")->capture_default_str();
  if (const auto code = parse_words(app, words)) return *code;

  PosixFileSystem files;
  PreparePrinter printer;
  std::vector<std::string> again{program_invocation_name, "data", "prepare"};
  again.insert(again.end(), words.list.begin(), words.list.end());
  const SignalMessage stopped("stopped; to continue: " + for_the_shell(again));
  const auto result =
      tokenize::prepare(request, files, [&](const tokenize::PrepareStatus& status) { printer.on_status(status); });
  printer.on_end(result, request.out);
  return 0;
}

}  // namespace braid::cli
