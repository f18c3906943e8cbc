// The failure state that the ranks of a world share. The first failure wins, and wakes all sleeping threads.
#include "braid/comm/local/world_state.h"

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::comm::local {

FailureListeners::Place FailureListeners::add(Listener listener) {
  const std::lock_guard lock(mutex_);
  if (failure_) listener(*failure_);
  return listeners_.insert(listeners_.end(), std::move(listener));
}

void FailureListeners::remove(Place place) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(place);
}

void FailureListeners::notify(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  for (const Listener& listener : listeners_) listener(failure);
}

WorldState::WorldState(int num_ranks, Options options) : options_(options), ended_(num_ranks), roster_(num_ranks) {}

void WorldState::fail(Failure failure) {
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    failed_.store(true);
  }
  wake_all();
  listeners_.notify(failure);
}

std::optional<Failure> WorldState::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

std::shared_ptr<void> WorldState::on_failure(FailureListeners::Listener listener) {
  const auto place = listeners_.add(std::move(listener));
  return {nullptr, [world_state = shared_from_this(), place](void*) { world_state->listeners_.remove(place); }};
}

void WorldState::raise(std::string op, double elapsed_seconds, std::vector<std::string> calls) const {
  std::optional<Failure> first = failure();
  check(first.has_value(), "a world that has not failed raises nothing");
  throw CommError({std::move(op), first->rank, elapsed_seconds, first->why, std::move(calls)});
}

void WorldState::begin(int rank) {
  enter([&] { roster_.begin(rank); });
}

void WorldState::leave(int rank) {
  enter([&] { roster_.leave(rank); });
}

void WorldState::end(int rank) {
  ended_[rank].store(true);
  any_ended_.store(true);
  wake_all();
  enter([&] { roster_.end(rank); });
}

std::shared_ptr<void> WorldState::queued(int rank, const Queue& queue) {
  enter([&] { roster_.add_task(rank, &queue); });
  return std::shared_ptr<void>(nullptr, [world_state = shared_from_this(), rank, &queue](void*) {
    world_state->enter([&] { world_state->roster_.remove_task(rank, &queue); });
  });
}

WorldState::Time WorldState::deadline() const {
  constexpr double kYears = 1e8;  // seconds; keeps the sum inside the clock's range
  auto wait = std::chrono::duration<double>(std::min(options_.deadline_seconds, kYears));
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<Time::duration>(wait);
}

template <class Change>
void WorldState::enter(const Change& change) {
  std::optional<Failure> standstill;
  {
    std::lock_guard lock(mutex_);
    change();
    if (failure_) return;
    const int rank = roster_.standstill();
    if (rank >= 0) standstill = {rank, rank, cat("no rank can continue: ", roster_.text())};
  }
  if (standstill) fail(std::move(*standstill));
}

void WorldState::wake_all() {
  std::lock_guard lock(mutex_);
  for (WaitQueue* gate : gates_) gate->wake();
}

WorldState::Enlisted::Enlisted(WorldState& world_state, WaitQueue& gate, const BlockedThread& sleeper)
    : world_state_(world_state), gate_(gate), sleeper_(sleeper) {
  world_state_.enter([this] {
    world_state_.gates_.push_back(&gate_);
    world_state_.roster_.sleep(sleeper_);
  });
}

WorldState::Enlisted::~Enlisted() {
  std::lock_guard lock(world_state_.mutex_);
  world_state_.gates_.erase(std::find(world_state_.gates_.begin(), world_state_.gates_.end(), &gate_));
  world_state_.roster_.wake(sleeper_);
}

}  // namespace braid::comm::local
