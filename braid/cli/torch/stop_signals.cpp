// The signal handlers of a run. They only use the clock, lock-free atomics, write(), kill() and _exit().
#include "braid/cli/torch/stop_signals.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iterator>
#include <new>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::cli {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kIgnoredSignals[] = {SIGPIPE, SIGXFSZ};  // the failed write reports the closed pipe or the size limit
constexpr int kBitsOfSignal = 8;                       // low bits of an event; its time is above them
constexpr int64_t kNanoseconds = 1'000'000'000;

enum class Training { NotBegun, OthersHear, Unsaved, Saved };

// State shared by the process and the ranks that it forks.
struct KnownToRanks {
  std::atomic<Training> training = Training::NotBegun;
  std::atomic<uint64_t> first_event = 0;  // 0: none yet
  std::atomic<bool> save_requested = false;
  pid_t caller = ::getpid();
};
static_assert(std::atomic<Training>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

// Global, because a signal handler can reach nothing else.
KnownToRanks* known = nullptr;
std::atomic<const char*> resume_text = nullptr;  // of this process and the ranks that it forks; null: none
struct sigaction actions_before[std::size(kStopSignals)], save_before, others_before[std::size(kIgnoredSignals)];

// Returns the time in nanoseconds, modulo 2^56, and the signal in one number, so that both are stored atomically.
uint64_t event_of(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto nanoseconds = static_cast<uint64_t>(now.tv_sec * kNanoseconds + now.tv_nsec);
  return nanoseconds << kBitsOfSignal | static_cast<uint64_t>(signal);
}

// Returns true if `event` counts as the same signal as `first`. A difference of times modulo 2^56 ns is right for a
// year, however long the machine has been up.
bool is_soon_after(uint64_t first, uint64_t event) {
  const auto later = static_cast<int64_t>(event - first) >> kBitsOfSignal;
  return later <= static_cast<int64_t>(StopSignals::kSameEventSeconds * kNanoseconds);
}

// Writes to standard error. Drops the rest if nobody reads it: the handler must not block the save. A pipe that poll()
// reports as writable takes PIPE_BUF bytes.
void write_text(const char* text) {
  for (size_t left = std::strlen(text); left > 0;) {
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    const ssize_t count = ::poll(&out, 1, 0) == 1 ? ::write(STDERR_FILENO, text, std::min<size_t>(left, PIPE_BUF)) : 0;
    if (count <= 0) return;
    text += count;
    left -= static_cast<size_t>(count);
  }
}

void print_signal(int signal, const char* what) {
  const char* name = signal == SIGINT    ? "SIGINT"
                     : signal == SIGTERM ? "SIGTERM"
                     : signal == SIGUSR1 ? "SIGUSR1"
                                         : "SIGHUP";
  for (const char* part : {"braid: ", name, what, "\n"}) write_text(part);
}

[[noreturn]] void end_at_once(int signal, const char* why) {
  print_signal(signal, why);
  ::_exit(128 + signal);
}

// A signal to a rank's process only requests that the run stop; the calling process decides how the run ends. Unless
// work would be lost, the rank forwards the signal to the caller. If the caller ends, its ranks end with it.
void on_stop_signal(int signal) {
  const int error = errno;
  const bool is_rank = ::getpid() != known->caller;
  const Training then = known->training;
  if (is_rank && then != Training::Unsaved) {
    ::kill(known->caller, signal);
    errno = error;
    return;
  }
  if (then == Training::NotBegun) end_at_once(signal, " before the first step: there was nothing to save");
  const uint64_t event = event_of(signal);
  uint64_t first = 0;
  const bool is_first = known->first_event.compare_exchange_strong(first, event);
  const bool is_same = is_rank || (!is_first && is_soon_after(first, event));
  if (then == Training::Saved && !is_same) end_at_once(signal, " after the last step: all is saved");
  if (is_first) {
    print_signal(signal,
                 then == Training::OthersHear
                     ? ": all hosts end before the first step; another signal, a moment from now, ends this one at once"
                     : ": the step is finished and saved; another signal, a moment from now, ends at once");
    const char* const text = resume_text;
    if (text && then == Training::Unsaved) write_text(text);
  } else if (!is_same) {
    end_at_once(signal, ", the second: nothing more is saved");
  }
  errno = error;
}

void on_save_signal(int) {
  const int error = errno;
  if (known->training == Training::Unsaved) {
    known->save_requested = true;
    print_signal(SIGUSR1, ": the run is saved after this step and continues");
  } else {
    print_signal(SIGUSR1, ": there is nothing to save");
  }
  errno = error;
}

KnownToRanks* in_shared_memory() {
  void* memory = ::mmap(nullptr, sizeof(KnownToRanks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw RunError(cat("no memory to share with ranks: ", std::strerror(errno)));
  return static_cast<KnownToRanks*>(memory);
}

}  // namespace

StopSignals::StopSignals() {
  if (!known) known = in_shared_memory();
  new (known) KnownToRanks();
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : kStopSignals) sigaddset(&action.sa_mask, signal);
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    sigaction(kStopSignals[i], nullptr, &actions_before[i]);
    if (actions_before[i].sa_handler != SIG_IGN) sigaction(kStopSignals[i], &action, nullptr);
  }
  action.sa_handler = on_save_signal;
  sigaction(SIGUSR1, &action, &save_before);
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  for (size_t i = 0; i < std::size(kIgnoredSignals); ++i) sigaction(kIgnoredSignals[i], &ignored, &others_before[i]);
}

StopSignals::~StopSignals() {
  resume_text = nullptr;
  sigaction(SIGUSR1, &save_before, nullptr);
  for (size_t i = 0; i < std::size(kStopSignals); ++i) sigaction(kStopSignals[i], &actions_before[i], nullptr);
  for (size_t i = 0; i < std::size(kIgnoredSignals); ++i) sigaction(kIgnoredSignals[i], &others_before[i], nullptr);
}

void StopSignals::set_resume_text(std::string text) {
  resume_text = nullptr;
  resume_text_ = std::move(text);
  resume_text = resume_text_.c_str();
}

void StopSignals::others_hear() { known->training = Training::OthersHear; }
void StopSignals::keep_work() { known->training = Training::Unsaved; }
bool StopSignals::takes_save_request() { return known->save_requested.exchange(false); }
void StopSignals::work_is_kept() { known->training = Training::Saved; }
int StopSignals::received() { return static_cast<int>(known->first_event & ((1 << kBitsOfSignal) - 1)); }

std::string signal_name(int signal) { return std::string("SIG") + sigabbrev_np(signal); }

}  // namespace braid::cli
