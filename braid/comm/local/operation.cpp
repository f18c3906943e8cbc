// Arrival, claiming and waiting. Two threads may each write one atomic and read the other's: arrival against sleep,
// failure against claim. These atomics are sequentially consistent. Threads access them per operation and per piece,
// not per element.
#include "braid/comm/local/operation.h"

#include <algorithm>
#include <thread>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/comm/pause.h"

namespace braid::comm::local {
namespace {

constexpr int64_t kMinPieceBytes = 16 << 10;   // smaller pieces cost more to claim than they save
constexpr int64_t kMaxPieceBytes = 512 << 10;  // larger pieces make the others wait for the last one
constexpr int64_t kPiecesPerParty = 4;

}  // namespace

Operation::Operation(std::shared_ptr<WorldState> world_state, int num_parties)
    : world_state_(std::move(world_state)), has_arrived_(num_parties), shares_(num_parties) {}

void Operation::set_work(int64_t units, int64_t unit_bytes) {
  int64_t parties = static_cast<int64_t>(has_arrived_.size());
  int64_t bytes = std::clamp(units * unit_bytes / (kPiecesPerParty * parties), kMinPieceBytes, kMaxPieceBytes);
  units_ = units;
  grain_ = std::max<int64_t>(1, bytes / unit_bytes);
  unclaimed_.store(units);
  for (int64_t party = 0; party < parties; ++party) {
    shares_[party].next.store(units * party / parties);
    shares_[party].end = units * (party + 1) / parties;
  }
}

void Operation::arrive(int party) {
  has_arrived_[party].store(true);
  if (arrived_.fetch_add(1) + 1 < static_cast<int>(has_arrived_.size())) return;
  if (units_ == 0) {
    complete();
  } else {
    gate_.wake();
  }
}

void Operation::wait(int party, double issued_seconds, const Queue* on) {
  WorldState::Time deadline = world_state_->deadline();
  const Waiting waiting(*this, party);
  for (;;) {
    help(party);
    if (world_state_->failed()) {
      quiesce();
      world_state_->raise(label(party), now_seconds() - issued_seconds, calls(party));
    }
    if (finished_.load()) return;
    if (spin()) continue;
    bool changed =
        world_state_->sleep(gate_, deadline, {world_rank(party), on, &waiting}, [this] { return actionable(); });
    int ended = missing_and_ended();
    if (ended >= 0) {
      report_ended(ended, party);
    } else if (!changed) {
      report_late(party);
    }
  }
}

bool Operation::poll(int party) {
  help(party);
  return finished_.load() || world_state_->failed();
}

bool Operation::actionable() const { return finished_.load() || (ready() && unclaimed()) || missing_and_ended() >= 0; }

bool Operation::spin() const {
  for (int turn = 0; turn < world_state_->options().spin_turns; ++turn) {
    if (finished_.load() || (ready() && unclaimed()) || world_state_->failed()) return true;
    pause_briefly();
  }
  return false;
}

// Returns the first party that has not arrived and never will; -1 if there is none. A rank's arrivals are visible
// before its end, so the end is read first.
int Operation::missing_and_ended() const {
  if (!world_state_->any_ended()) return -1;
  for (int party = 0; party < static_cast<int>(has_arrived_.size()); ++party) {
    if (world_state_->ended(world_rank(party)) && !has_arrived_[party].load()) return party;
  }
  return -1;
}

void Operation::help(int party) {
  if (!ready() || !unclaimed()) return;
  active_.fetch_add(1);  // before failed() is read; quiesce() reads in the opposite order
  int parties = static_cast<int>(shares_.size());
  for (int i = 0; i < parties; ++i) work_on(shares_[(party + i) % parties]);
  active_.fetch_sub(1);
}

void Operation::work_on(Share& share) {
  while (share.next.load() < share.end && !world_state_->failed()) {
    int64_t begin = share.next.fetch_add(grain_);
    if (begin >= share.end) return;
    int64_t end = std::min(begin + grain_, share.end);
    unclaimed_.fetch_sub(end - begin);
    run(begin, end);
    if (done_.fetch_add(end - begin) + (end - begin) == units_) complete();
  }
}

void Operation::complete() {
  finish();
  finished_.store(true);
  gate_.wake();
}

// Waits until no thread processes a piece. After a failure no thread claims another piece.
void Operation::quiesce() const {
  while (active_.load() > 0) std::this_thread::yield();
}

void Operation::report_ended(int missing, int party) {
  world_state_->fail(
      {world_rank(missing), world_rank(party), cat("has ended without joining ", label(party), last_call(missing))});
}

void Operation::report_late(int party) {
  int first = 0;
  while (first < static_cast<int>(has_arrived_.size()) && has_arrived_[first].load()) ++first;
  std::string limit = cat(exact(world_state_->options().deadline_seconds), " s");
  if (first == static_cast<int>(has_arrived_.size())) {
    world_state_->fail(
        {world_rank(party), world_rank(party), cat("all arrived at ", label(party), ", not done within ", limit)});
  } else {
    world_state_->fail(
        {world_rank(first), world_rank(party),
         cat("did not arrive at ", label(party), " within ", limit, " (missing: ", missing(), ")", last_call(first))});
  }
}

std::string Operation::Waiting::description() const {
  return cat(operation.label(party), " (missing: ", operation.missing(), ")");
}

std::string Operation::missing() const {
  std::vector<std::string> ranks;
  for (int party = 0; party < static_cast<int>(has_arrived_.size()); ++party) {
    if (!has_arrived_[party].load()) ranks.push_back(cat(world_rank(party)));
  }
  return cat("rank ", joined(ranks));
}

}  // namespace braid::comm::local
