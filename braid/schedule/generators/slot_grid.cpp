// The grid of passes in slots. Its operations keep the order of each rank's passes.
#include "braid/schedule/generators/slot_grid.h"

#include <algorithm>

namespace braid::schedule {
namespace {

constexpr int kPeriod = 6;  // slots from one microbatch to the next: the passes of a microbatch on a rank, W included

}  // namespace

SlotGrid::SlotGrid(int ranks, int microbatches, Pattern pattern) : ranks_(ranks), microbatches_(microbatches) {
  for (auto& of_pass : slots_) of_pass.resize(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::array<int, 4> first = pattern(ranks, rank);
    for (int pass = 0; pass < kWeightGrad; ++pass) {
      for (int micro = 0; micro < microbatches; ++micro) {
        slots_[pass][rank].push_back(first[pass] + kPeriod * micro);
      }
    }
  }
}

std::vector<SlotGrid::Place> SlotGrid::places() const {
  std::vector<Place> all;
  for (int pass = 0; pass < kNumSlotPasses; ++pass) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto& slots = slots_[pass][rank];
      for (int index = 0; index < static_cast<int>(slots.size()); ++index) {
        all.push_back({slots[index], rank, pass, index});
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int> SlotGrid::row(int rank) const {
  std::vector<int> row;
  for (int pass = 0; pass < kNumSlotPasses; ++pass) {
    for (const int slot : slots_[pass][rank]) {
      if (slot >= static_cast<int>(row.size())) row.resize(slot + 1, kEmpty);
      row[slot] = pass;
    }
  }
  return row;
}

// Returns the slot of the rank's n-th input gradient, counted over both chunks in the order of slots.
int SlotGrid::input_grad_slot(int rank, int n) const {
  const auto& up = slots_[kInputGradUp][rank];
  const auto& down = slots_[kInputGradDown][rank];
  size_t i = 0, j = 0;
  int slot = 0;
  for (int count = 0; count <= n; ++count) {
    const bool from_up = j == down.size() || (i < up.size() && up[i] < down[j]);
    slot = from_up ? up[i++] : down[j++];
  }
  return slot;
}

int SlotGrid::after_needs(const Place& place) const {
  const auto [own, rank, pass, index] = place;
  int latest = index > 0 ? slot(pass, rank, index - 1) : -1;
  if (pass == kWeightGrad) return std::max(latest, input_grad_slot(rank, index)) + 1;
  if (pass != kForwardDown) latest = std::max(latest, slot(pass - 1, rank, index));
  const bool from_before = pass == kForwardDown || pass == kInputGradUp;
  const int source = from_before ? rank - 1 : rank + 1;
  if (source >= 0 && source < ranks_) latest = std::max(latest, slot(pass, source, index));
  return latest + 1;
}

void SlotGrid::add_weight_grads() {
  for (int rank = 0; rank < ranks_; ++rank) {
    auto& weights = slots_[kWeightGrad][rank];
    const std::vector<int> passes = row(rank);
    size_t input_grads = 0;
    int slot = 0;
    for (const int pass : passes) {
      if (pass == kInputGradUp || pass == kInputGradDown) ++input_grads;
      if (pass == kEmpty && weights.size() < input_grads) weights.push_back(slot);
      ++slot;
    }
    while (weights.size() < input_grads) weights.push_back(slot++);
  }
}

void SlotGrid::drop_weight_grads() {
  for (auto& weights : slots_[kWeightGrad]) weights.clear();
}

void SlotGrid::squeeze() {
  std::vector<int> free(ranks_, 0);
  for (const Place& place : places()) {
    const int start = place.pass == kWeightGrad ? free[place.rank] : std::max(free[place.rank], after_needs(place));
    move(place, start);
    free[place.rank] = start + 1;
  }
}

}  // namespace braid::schedule
