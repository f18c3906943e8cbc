// The heartbeat thread, and its checks of the other threads of the process.
#include "braid/launch/heartbeat_thread.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <limits>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/started_thread.h"
#include "braid/base/text.h"
#include "braid/launch/hang_detector.h"

namespace braid::launch {
namespace {

constexpr double kBusyPatience = 10;        // factor on `progress_seconds`, the same as for ranks that access files
constexpr double kLookSeconds = 0.5;        // time between two checks of the other threads
constexpr double kComputedSeconds = 0.001;  // more CPU time than this between two checks counts as progress

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double computed_by_others() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID); }

bool is_held_outside() {
  const auto seen = process_status(getpid());
  return seen && (seen->state == 'D' || seen->state == 't');
}

// A scope in which this thread blocks all signals. A thread that starts in it inherits the mask, so the other threads
// receive the signals as before.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

HeartbeatThread::HeartbeatThread(control::JobControl& control, double progress_seconds)
    : control_(control),
      patience_seconds_(progress_seconds > 0 ? kBusyPatience * progress_seconds
                                             : std::numeric_limits<double>::infinity()),
      looked_at_(now_seconds()),
      sign_at_(looked_at_),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  if (wake_ < 0) throw RunError(cat("no descriptor to wake a thread by: ", std::strerror(errno)));
  const WithoutSignals none;
  try {
    thread_ = started_thread("heartbeats", [this] { run(); });
  } catch (const RunError&) {
    close(wake_);
    throw;
  }
}

HeartbeatThread::~HeartbeatThread() {
  end();
  close(wake_);
}

// The kernel lists a joined thread for a moment, so this waits until the entry is gone.
void HeartbeatThread::end() {
  if (!thread_.joinable()) return;
  leaving_ = true;
  eventfd_write(wake_, 1);
  thread_.join();
  const std::string listed = cat("/proc/self/task/", thread_id_.load());
  while (access(listed.c_str(), F_OK) == 0) poll(nullptr, 0, 1);
}

std::vector<control::JobEvent> HeartbeatThread::leave() {
  end();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return std::exchange(events_, {});
}

void HeartbeatThread::run() noexcept {
  thread_id_ = gettid();
  try {
    listen();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void HeartbeatThread::listen() {
  while (!leaving_) {
    std::vector<pollfd> watched;
    const bool beats = !stands_still();
    const int most = beats ? control_.watch(watched) : std::numeric_limits<int>::max();
    watched.push_back({wake_, POLLIN, 0});
    poll(watched.data(), watched.size(), std::min(most, static_cast<int>(kLookSeconds * 1000)));
    if (!beats) continue;
    for (control::JobEvent& event : control_.advance()) {
      if (event.kind != control::JobEvent::Kind::Progress) events_.push_back(std::move(event));
    }
  }
}

// Returns true if the other threads make no progress for too long. Time in which this thread did not run does not
// count.
bool HeartbeatThread::stands_still() {
  const double now = now_seconds();
  if (now - looked_at_ >= kLookSeconds) {
    const double computed = computed_by_others();
    const bool was_away = now - looked_at_ > 4 * kLookSeconds;
    if (was_away || computed - computed_seconds_ > kComputedSeconds || is_held_outside()) sign_at_ = now;
    computed_seconds_ = computed;
    looked_at_ = now;
  }
  return now - sign_at_ > patience_seconds_;
}

}  // namespace braid::launch
