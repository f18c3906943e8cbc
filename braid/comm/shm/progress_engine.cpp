// Waiting: look at the bell, move everything on, sleep if it has not rung since.
#include "braid/comm/shm/progress_engine.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/text.h"

namespace braid::comm::shm {
ProgressEngine::ProgressEngine(SharedWorld& world, int rank) : world_(world), rank_(rank), lanes_(world, rank) {}

std::shared_ptr<CollectiveQueue> ProgressEngine::open(std::shared_ptr<const Group> group, int rank) {
  auto line = std::make_shared<CollectiveQueue>(std::move(group), rank);
  const std::lock_guard lock(mutex_);
  lines_.push_back({line});
  return line;
}

void ProgressEngine::close(const std::shared_ptr<CollectiveQueue>& line) {
  const std::lock_guard lock(mutex_);
  for (OpenLine& open : lines_) open.closed |= open.line == line;
}

void ProgressEngine::arrive(const std::shared_ptr<CollectiveQueue>& line, std::shared_ptr<Collective> collective) {
  const std::lock_guard lock(mutex_);
  const bool known = std::ranges::any_of(lines_, [&](const OpenLine& open) { return open.line == line; });
  if (!known) lines_.push_back({line, true});  // its communicator was gone before the rank's queue came to the call
  line->add(std::move(collective));
  move_on();
}

void ProgressEngine::arrive(std::vector<std::shared_ptr<PointToPoint>> messages) {
  const std::lock_guard lock(mutex_);
  for (auto& message : messages) lanes_.add(std::move(message));
  move_on();
}

void ProgressEngine::wait(const Operation& operation, double issued_seconds) {
  ReportedWait told(&world_.board().activity(rank_));
  double left = world_.options().deadline_seconds, turn = now_seconds();
  Notifier& bell = world_.bell(rank_);
  for (;;) {
    const uint32_t seen = bell.look();
    advance();
    if (world_.failed()) {
      { const std::lock_guard lock(mutex_); }  // whoever is at work ends its step
      world_.raise(operation.label(), now_seconds() - issued_seconds);
    }
    if (operation.done()) return;
    if (const int gone = lost(operation); gone >= 0) {
      world_.fail({gone, rank_, cat("has ended without joining ", operation.label())});
    } else if (left > 0) {
      bell.wait(seen, told.nap(left, [&] { return operation.label(); }), world_.options().spin_turns);
      const double begin = std::exchange(turn, now_seconds());
      left -=
          std::min(turn - begin, Notifier::kNapSeconds);  // a turn that takes longer was stopped, and all ranks with it
    } else {
      report_late(operation);
    }
  }
}

bool ProgressEngine::poll(const Operation& operation) {
  advance();
  return operation.done() || world_.failed();
}

void ProgressEngine::finish() {
  world_.leave(rank_);
  ReportedWait told(&world_.board().activity(rank_));
  for (;;) {  // peers that never come are ended by whoever watches the processes
    const uint32_t seen = world_.bell(rank_).look();
    advance();
    if (world_.failed() || idle()) break;
    const double nap = told.nap(Notifier::kNapSeconds, [] { return "peers that take what is theirs"; });
    world_.bell(rank_).wait(seen, nap, 0);
  }
  world_.end(rank_);
}

void ProgressEngine::advance() {
  const std::lock_guard lock(mutex_);
  move_on();
}

void ProgressEngine::move_on() {
  for (bool any = true; any && !world_.failed();) {
    any = lanes_.advance();
    for (OpenLine& open : lines_) any |= open.line->advance();
  }
  std::erase_if(lines_, [](const OpenLine& open) { return open.closed && open.line->idle(); });
}

bool ProgressEngine::idle() {
  const std::lock_guard lock(mutex_);
  lanes_.mark_lost();
  return lanes_.idle() && std::ranges::all_of(lines_, [](const OpenLine& open) { return open.line->idle(); });
}

int ProgressEngine::lost(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  if (operation.done()) return -1;
  lanes_.mark_lost();
  return operation.lost();
}

void ProgressEngine::report_late(const Operation& operation) {
  const std::string limit = cat(exact(world_.options().deadline_seconds), " s");
  const std::vector<int> missing = operation.missing();
  if (missing.empty()) {
    world_.fail({rank_, rank_, cat("all arrived at ", operation.label(), ", not done within ", limit)});
    return;
  }
  std::vector<std::string> ranks;
  for (int rank : missing) ranks.push_back(cat(rank));
  world_.fail(
      {missing[0], rank_,
       cat("did not arrive at ", operation.label(), " within ", limit, " (missing: rank ", joined(ranks), ")")});
}

}  // namespace braid::comm::shm
