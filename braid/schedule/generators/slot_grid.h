// Passes of a V of stages in slots of equal length, one pass per rank and slot: what V-Half and V-Min are built in.
// Source: Qi et al., "Pipeline Parallelism with Controllable Memory" (2024), section 3 and appendix.
#pragma once

#include <array>
#include <vector>

namespace braid::schedule {

// The passes of a microbatch on a rank in the order in which it needs them: forward of the first chunk and of the
// second, input gradient of the second and of the first; and the weight pass of either.
enum SlotPass { kForwardDown, kForwardUp, kInputGradUp, kInputGradDown, kWeightGrad, kNumSlotPasses };

class SlotGrid {
 public:
  static constexpr int kEmpty = -1;

  // The slots of microbatch 0's passes on a rank, W left out; each further microbatch comes six slots after the one
  // before.
  using Pattern = std::array<int, 4> (*)(int ranks, int rank);
  SlotGrid(int ranks, int microbatches, Pattern pattern);

  // One pass. `index` is its microbatch; for W, which is counted over both chunks, the n-th belongs to the n-th input
  // gradient of the rank.
  struct Place {
    int slot, rank, pass, index;
    auto operator<=>(const Place&) const = default;
  };

  int ranks() const { return ranks_; }
  int microbatches() const { return microbatches_; }
  bool has_weight_grads() const { return !slots_[kWeightGrad][0].empty(); }
  std::vector<Place> places() const;     // ascending
  std::vector<int> row(int rank) const;  // the pass of every slot, or kEmpty
  int after_needs(
      const Place& place) const;  // the first slot after the passes it needs and the one before it on its rank
  void move(const Place& place, int slot) { slots_[place.pass][place.rank][place.index] = slot; }

  // Puts one W into each empty slot that has an input gradient without its W before it, and what is left at the end.
  void add_weight_grads();
  void drop_weight_grads();

  // Starts every pass as early as the order on its rank and the passes that it needs allow.
  void squeeze();

 private:
  int slot(int pass, int rank, int index) const { return slots_[pass][rank][index]; }
  int input_grad_slot(int rank, int n) const;

  const int ranks_, microbatches_;
  std::array<std::vector<std::vector<int>>, kNumSlotPasses> slots_;  // by pass, rank and index
};

// Moves passes to the earliest slots with which no rank holds more chunks than the fullest rank did before; a chunk is
// held from its forward to its weight pass. Passes of the steady middle stay, and so do those before it when the grid
// has no W.
void compact(SlotGrid& grid);

}  // namespace braid::schedule
