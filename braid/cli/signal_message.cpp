// The handler only writes and exits.
#include "braid/cli/signal_message.h"

#include <signal.h>
#include <unistd.h>

#include <iterator>

namespace braid::cli {
namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};

// A signal handler can reach nothing else.
const std::string* last_words = nullptr;
struct sigaction endings_before[std::size(kEnding)];

void say_and_end(int signal) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, last_words->data(), last_words->size());
  ::_exit(128 + signal);
}

}  // namespace

SignalMessage::SignalMessage(std::string words) : words_("\n" + std::move(words) + "\n") {
  last_words = &words_;
  struct sigaction action {};
  action.sa_handler = say_and_end;
  for (size_t i = 0; i < std::size(kEnding); ++i) {
    sigaction(kEnding[i], nullptr, &endings_before[i]);
    if (endings_before[i].sa_handler != SIG_IGN) sigaction(kEnding[i], &action, nullptr);
  }
}

SignalMessage::~SignalMessage() {
  for (size_t i = 0; i < std::size(kEnding); ++i) sigaction(kEnding[i], &endings_before[i], nullptr);
}

}  // namespace braid::cli
