// One loop: sleep until a rank or a signal says something, pass on, bury, kill who is late. A failure of the world says
// nothing here, so it is looked for now and then.
#include "braid/launch/supervisor.h"

#include <poll.h>

#include <algorithm>
#include <csignal>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/launch/rank_outcome.h"

namespace braid {
namespace {

constexpr int kLookMilliseconds = 50;  // while nothing is said

}  // namespace

void Supervisor::start(const std::function<void(int line)>& life) {
  ranks_.push_back(std::make_unique<ForkedProcess>(cat("rank ", ranks_.size()), [&](int line) {
    leave_to_child();
    life(line);
  }));
}

void Supervisor::run() {
  while (std::ranges::any_of(ranks_, [](const auto& rank) { return rank->runs(); })) {
    sleep();
    for (int signal : signals_.take()) pass_on(signal);
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) bury(rank);
    kill_late();
  }
}

void Supervisor::leave_to_child() {
  for (const auto& rank : ranks_) rank->forget();
  signals_.leave_to_child();
}

void Supervisor::sleep() {
  std::vector<pollfd> watched{{signals_.descriptor(), POLLIN, 0}};
  for (const auto& rank : ranks_) {  // poll() skips what is -1
    watched.push_back({rank->line(), POLLIN, 0});
    watched.push_back({rank->descriptor(), POLLIN, 0});
  }
  poll(watched.data(), watched.size(), kLookMilliseconds);
}

// All ranks and this process stop and go on together.
void Supervisor::pass_on(int signal) {
  send(signal);
  if (signal != SIGTSTP) return;
  signals_.stop();
  send(SIGCONT);
  failed_at_ = -1;  // the grace begins again
}

void Supervisor::bury(int rank) {
  ForkedProcess& process = *ranks_[rank];
  if (!process.runs()) return;
  const auto how = process.end();
  if (how && !RankOutcome::complete(process.heard())) world_.fail({rank, rank, *how});
}

void Supervisor::kill_late() {
  if (!world_.failed()) return;
  if (failed_at_ < 0) failed_at_ = now_seconds();
  if (now_seconds() - failed_at_ > grace_seconds_) send(SIGKILL);
}

void Supervisor::send(int signal) {
  for (const auto& rank : ranks_) rank->send(signal);
}

}  // namespace braid
