// The shared fate of a world: first failure wins, every sleeper wakes.
// It does not decide what a failure is.
#include "braid/comm/local/fate.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid {

Fate::Fate(int num_ranks, Options options) : options_(options), ended_(num_ranks) {}

void Fate::fail(Failure failure) {
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(failure);
    failed_.store(true);
  }
  wake_all();
}

std::optional<Failure> Fate::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void Fate::raise(std::string op, double elapsed_seconds) const {
  std::optional<Failure> first = failure();
  check(first.has_value(), "a world that has not failed raises nothing");
  throw CommError({std::move(op), first->rank, elapsed_seconds, first->why});
}

void Fate::end(int rank) {
  ended_[rank].store(true);
  any_ended_.store(true);
  wake_all();
}

Fate::Time Fate::deadline() const {
  constexpr double kYears = 1e8;  // seconds; keeps the sum inside the clock's range
  auto wait = std::chrono::duration<double>(std::min(options_.deadline_seconds, kYears));
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<Time::duration>(wait);
}

void Fate::wake_all() {
  std::lock_guard lock(mutex_);
  for (Gate* gate : gates_) gate->wake();
}

Fate::Enlisted::Enlisted(Fate& fate, Gate& gate) : fate_(fate), gate_(gate) {
  std::lock_guard lock(fate_.mutex_);
  fate_.gates_.push_back(&gate_);
}

Fate::Enlisted::~Enlisted() {
  std::lock_guard lock(fate_.mutex_);
  fate_.gates_.erase(std::find(fate_.gates_.begin(), fate_.gates_.end(), &gate_));
}

}  // namespace braid
