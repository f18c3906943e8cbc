#include "braid/moves/residency.h"

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::moves {

Residency::Residency(std::vector<Chunk> chunks, const Request& request)
    : trace_{std::move(chunks), {}},
      request_(request),
      held_(trace_.chunks.size(), false),
      num_users_(trace_.chunks.size(), 0),
      last_used_(trace_.chunks.size(), 0) {}

Moves Residency::begin_step() {
  end_step();
  Moves moves;
  if (!table_) return moves;
  if (!follows_) restart(moves);
  load_after(last_use(), moves);
  return moves;
}

// Goes to the next step of the table, or makes a new table if the step differed from the trace.
void Residency::end_step() {
  const bool in_use = std::any_of(num_users_.begin(), num_users_.end(), [](int users) { return users > 0; });
  check(!in_use, "all uses have ended when a step ends");
  if (trace_.uses.empty()) return;
  if (follows_ && trace_.uses.size() == planned_.size()) {
    step_ = (step_ + 1) % table_->num_steps;
    if (step_ == 0) next_load_ = next_eviction_ = 0;
  } else {
    table_ = plan(trace_, request_);
    planned_ = trace_.uses;
    follows_ = false;
  }
  trace_.uses.clear();
}

// Brings memory to the state in which the table begins.
void Residency::restart(Moves& moves) {
  step_ = 0;
  next_load_ = next_eviction_ = 0;
  follows_ = true;
  std::vector<bool> initial(held_.size(), false);
  for (const int chunk : table_->initial) initial[chunk] = true;
  for (int chunk = 0; chunk < std::ssize(held_); ++chunk) {
    if (held_[chunk] && !initial[chunk]) evict(chunk, moves);
  }
  for (const int chunk : table_->initial) {
    if (!held_[chunk]) load(chunk, moves);
  }
}

Moves Residency::before_use(const std::vector<int>& chunks) {
  Moves moves;
  ++clock_;
  for (const int chunk : chunks) {
    ++num_users_[chunk];
    last_used_[chunk] = clock_;
  }
  Use use;
  for (int chunk = 0; chunk < std::ssize(num_users_); ++chunk) {
    if (num_users_[chunk] > 0) use.chunks.push_back(chunk);
  }
  const size_t index = trace_.uses.size();
  follows_ = follows_ && index < planned_.size() && planned_[index] == use;
  if (follows_) {
    evict_after(last_use(), moves);
    load_after(last_use(), moves);
  } else {
    load_on_demand(use, moves);
  }
  trace_.uses.push_back(std::move(use));
  return moves;
}

Moves Residency::after_use(const std::vector<int>& chunks) {
  Moves moves;
  for (const int chunk : chunks) {
    check(num_users_[chunk] > 0, "a use that ends has begun");
    --num_users_[chunk];
  }
  const bool in_use = std::any_of(num_users_.begin(), num_users_.end(), [](int users) { return users > 0; });
  if (!follows_ || in_use) return moves;  // before_use() returns these moves
  evict_after(last_use(), moves);
  const bool step_ended = trace_.uses.size() == planned_.size();  // the loads that follow are the next step's
  if (!step_ended) load_after(last_use(), moves);
  return moves;
}

Moves Residency::clear() {
  end_step();
  Moves moves;
  for (int chunk = 0; chunk < std::ssize(held_); ++chunk) {
    if (held_[chunk]) evict(chunk, moves);
  }
  follows_ = false;
  return moves;
}

void Residency::plan_with(const Request& request) {
  check(table_ && bytes_held_ == 0, "a table is replaced between steps");
  request_ = request;
  table_ = plan(planned(), request_);
  follows_ = false;
}

void Residency::load(int chunk, Moves& moves) {
  held_[chunk] = true;
  bytes_held_ += trace_.chunks[chunk].bytes;
  bytes_loaded_ += trace_.chunks[chunk].bytes;
  moves.loads.push_back(chunk);
}

void Residency::evict(int chunk, Moves& moves) {
  held_[chunk] = false;
  bytes_held_ -= trace_.chunks[chunk].bytes;
  moves.evictions.push_back({chunk, fate_of(trace_.chunks[chunk])});
}

// Loads what a use lacks, in the place of the least recently used chunks.
void Residency::load_on_demand(const Use& use, Moves& moves) {
  int64_t missing = 0;
  for (const int chunk : use.chunks) missing += held_[chunk] ? 0 : trace_.chunks[chunk].bytes;
  while (bytes_held_ + missing > request_.capacity) {
    int oldest = -1;
    for (int chunk = 0; chunk < std::ssize(held_); ++chunk) {
      const bool movable = held_[chunk] && num_users_[chunk] == 0;
      if (movable && (oldest < 0 || last_used_[chunk] < last_used_[oldest])) oldest = chunk;
    }
    if (oldest < 0) {
      throw RunError(cat("parameters that are used together take ",
                         human_bytes(static_cast<double>(bytes_held_ + missing)), ", more than the ",
                         human_bytes(static_cast<double>(request_.capacity)), " that memory has for them"));
    }
    evict(oldest, moves);
  }
  for (const int chunk : use.chunks) {
    if (!held_[chunk]) load(chunk, moves);
  }
}

void Residency::evict_after(int use, Moves& moves) {
  const std::vector<Eviction>& evictions = table_->evictions;
  for (; next_eviction_ < evictions.size() && evictions[next_eviction_].after <= use; ++next_eviction_) {
    evict(evictions[next_eviction_].chunk, moves);
  }
}

void Residency::load_after(int use, Moves& moves) {
  const std::vector<Load>& loads = table_->loads;
  for (; next_load_ < loads.size() && loads[next_load_].after <= use; ++next_load_) {
    load(loads[next_load_].chunk, moves);
  }
}

}  // namespace braid::moves
