// One loop waits for ranks, signals and the delegate, forwards signals, reaps ended ranks, samples the others, and
// kills late ones. A failure of the world wakes no descriptor here, so the loop polls for it.
#include "braid/launch/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/launch/hang_detector.h"

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
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // the process stops here
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

void SignalRelay::leave_to_child() {
  close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

namespace {

constexpr int kLookMilliseconds = 50;  // longest sleep of the loop

}  // namespace

void Supervisor::start(int rank, const std::function<void(int line)>& life) {
  auto process = std::make_unique<ForkedProcess>(cat("rank ", rank), [&](int line) {
    leave_to_child();
    life(line);
  });
  ranks_.push_back({rank, std::move(process)});
}

void Supervisor::run() {
  while (any_runs() || parts_.delegate.has_work()) {
    sleep();
    for (int signal : parts_.signals.take()) pass_on(signal);
    reap();
    parts_.delegate.advance(*this);
    look();
    kill_late();
  }
}

bool Supervisor::any_runs() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.process->runs(); });
}

bool Supervisor::any_exits() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) {
    const auto seen = rank.process->runs() ? process_status(rank.process->pid()) : std::nullopt;
    return seen && seen->exits;
  });
}

void Supervisor::leave_to_child() {
  for (const Rank& rank : ranks_) rank.process->forget();
  parts_.signals.leave_to_child();
  parts_.delegate.leave_to_child();
}

void Supervisor::sleep() {
  std::vector<pollfd> watched{{parts_.signals.descriptor(), POLLIN, 0}};
  for (const auto& [rank, process] : ranks_) {  // poll() skips descriptors of -1
    watched.push_back({process->line(), POLLIN, 0});
    watched.push_back({process->descriptor(), POLLIN, 0});
  }
  const int most = parts_.delegate.watch(watched);
  poll(watched.data(), watched.size(), std::min(kLookMilliseconds, most));
}

// All ranks and this process stop and continue together.
void Supervisor::pass_on(int signal) {
  send(signal);
  if (signal != SIGTSTP) return;
  parts_.signals.stop();
  send(SIGCONT);
  failed_at_ = -1;  // the grace period begins again
}

void Supervisor::reap() {
  for (int place = 0; place < num_ranks(); ++place) reap(place);
}

void Supervisor::reap(int place) {
  ForkedProcess& process = *ranks_[place].process;
  if (!process.runs()) return;
  const auto how = process.end();
  if (!how || parts_.delegate.has_outcome(*this, place) || parts_.delegate.lets_go(*this, place)) return;
  fail(place, *how);
}

void Supervisor::send(int place, const std::string& bytes) {
  if (!ranks_[place].process->send(bytes)) fail(place, "does not read its answers");
}

void Supervisor::fail(int place, const std::string& how) {
  const auto& [rank, process] = ranks_[place];
  const comm::RankActivity& activity = parts_.board.activity(place);
  const std::string doing = activity.look().text(), held = activity.held();
  std::string why = cat(how, ", process ", process->pid(), " on ", host_name());
  if (!doing.empty()) why += cat(": ", doing);
  if (!held.empty()) why += cat("; after its last step it held ", held);
  parts_.failures.fail({rank, rank, why});
}

std::string Supervisor::state(int place) const {
  const comm::ActivitySnapshot doing = parts_.board.activity(place).look();
  const std::string what = doing.text();
  return cat("rank ", ranks_[place].rank, " at its activity ", doing.count, ", ",
             what.empty() ? "which has not begun" : what);
}

void Supervisor::look() {
  if (now_seconds() - looked_at_ < kSignSeconds) return;
  looked_at_ = now_seconds();
  std::vector<RankSample> signs;
  for (int place = 0; place < num_ranks(); ++place) signs.push_back(signs_of(place));
  parts_.delegate.look(*this, signs);
}

RankSample Supervisor::signs_of(int place) {
  const ForkedProcess& process = *ranks_[place].process;
  RankSample signs;
  const auto seen = process.runs() ? process_status(process.pid()) : std::nullopt;
  signs.ended = !seen || seen->state == 'Z' || parts_.delegate.has_outcome(*this, place);
  if (signs.ended) return signs;
  const comm::ActivitySnapshot doing = parts_.board.activity(place).look();
  signs.waits = !doing.waits_in.empty() && !is_stopped(*seen);
  signs.serves = doing.serves;
  signs.of_storage = doing.of_storage;
  signs.held_outside = seen->state == 'D' || seen->state == 't' || (doing.of_people && !is_stopped(*seen));
  signs.activities = doing.count;
  signs.io_bytes = seen->io_bytes;
  signs.cpu_seconds = seen->cpu_seconds;
  signs.slowest_step = doing.slowest_step;
  return signs;
}

void Supervisor::kill_late() {
  if (!parts_.board.failed()) return;
  if (failed_at_ < 0) failed_at_ = now_seconds();
  const double late_seconds = now_seconds() - failed_at_ - patience_.grace_seconds;
  if (late_seconds <= 0) return;
  send(SIGKILL);
  if (late_seconds <= patience_.death_seconds) return;
  for (Rank& rank : ranks_) {
    if (rank.process->runs()) leave_behind(rank);
  }
}

// Leaves the process running, because it may never end.
void Supervisor::leave_behind(Rank& rank) {
  const pid_t process = rank.process->pid();
  left_behind_ += cat(left_behind_.empty() ? "" : "; ", "rank ", rank.rank, ", process ", process, " on ", host_name(),
                      ", does not die of SIGKILL and is left behind: it waits in ", kernel_wait(process));
  rank.process->forget();
}

void Supervisor::send(int signal) {
  for (const Rank& rank : ranks_) rank.process->send(signal);
}

}  // namespace braid::launch
