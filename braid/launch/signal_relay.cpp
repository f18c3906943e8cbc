// Blocked signals, read from a descriptor: no handler, so nothing global.
#include "braid/launch/signal_relay.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::launch {

SignalRelay::SignalRelay(const std::vector<int>& signals) {
  pthread_sigmask(SIG_BLOCK, nullptr, &before_);
  sigset_t held;
  sigemptyset(&held);
  for (int signal : signals) {
    if (sigismember(&before_, signal) == 0) sigaddset(&held, signal);
  }
  descriptor_ = signalfd(-1, &held, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) throw RunError(cat("cannot listen to signals: ", std::strerror(errno)));
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

SignalRelay::~SignalRelay() {
  close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  for (int signal : taken_) raise(signal);
}

std::vector<int> SignalRelay::take() {
  std::vector<int> now;
  signalfd_siginfo info;
  while (read(descriptor_, &info, sizeof info) == sizeof info) {
    now.push_back(static_cast<int>(info.ssi_signo));
    if (now.back() != SIGTSTP) taken_.push_back(now.back());
  }
  return now;
}

void SignalRelay::stop() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // here it stops
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

void SignalRelay::leave_to_child() {
  close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace braid::launch
