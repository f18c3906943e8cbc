// A grid of slots of equal length, one pass per rank and slot, for stages in a V. V-Half and V-Min are built with it.
// Source: Qi et al., "Pipeline Parallelism with Controllable Memory" (2024), section 3 and appendix.
#pragma once

#include <array>
#include <vector>

namespace braid::schedule {

// The passes of a microbatch on a rank, in the order in which they depend on each other: forward of the first and of
// the second chunk, input gradient of the second and of the first chunk. kWeightGrad is the weight pass of either
// chunk.
enum SlotPass { kForwardDown, kForwardUp, kInputGradUp, kInputGradDown, kWeightGrad, kNumSlotPasses };

class SlotGrid {
 public:
  static constexpr int kEmpty = -1;

  // A function that returns the slots of microbatch 0's passes on a rank, without W. The passes of each further
  // microbatch come six slots later.
  using Pattern = std::array<int, 4> (*)(int ranks, int rank);
  SlotGrid(int ranks, int microbatches, Pattern pattern);

  // A pass. `index` is its microbatch. W is counted over both chunks instead: the n-th W belongs to the rank's n-th
  // input gradient.
  struct Place {
    int slot, rank, pass, index;
    auto operator<=>(const Place&) const = default;
  };

  int ranks() const { return ranks_; }
  int microbatches() const { return microbatches_; }
  bool has_weight_grads() const { return !slots_[kWeightGrad][0].empty(); }
  std::vector<Place> places() const;     // ascending
  std::vector<int> row(int rank) const;  // the pass in each slot, or kEmpty
  int after_needs(
      const Place& place) const;  // the first slot after its dependencies and the same pass of the previous microbatch
  void move(const Place& place, int slot) { slots_[place.pass][place.rank][place.index] = slot; }

  // Fills each empty slot with a W if an earlier input gradient still has none, and puts the remaining W at the end.
  void add_weight_grads();
  void drop_weight_grads();

  // Starts every pass as early as the order on its rank and its dependencies allow.
  void squeeze();

 private:
  int slot(int pass, int rank, int index) const { return slots_[pass][rank][index]; }
  int input_grad_slot(int rank, int n) const;

  const int ranks_, microbatches_;
  std::array<std::vector<std::vector<int>>, kNumSlotPasses> slots_;  // by pass, rank and index
};

// Moves passes to the earliest slots at which no rank holds more chunks than the fullest rank did before. A chunk is
// held from its forward to its weight pass. Passes of the steady phase stay, and so do those before it if the grid has
// no W.
void compact(SlotGrid& grid);

}  // namespace braid::schedule
