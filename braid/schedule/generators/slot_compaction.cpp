// compact() moves passes in the order of their slots, each to the first slot that can take it.
#include <algorithm>

#include "braid/schedule/generators/slot_grid.h"

namespace braid::schedule {
namespace {

bool is_forward(int pass) { return pass == kForwardDown || pass == kForwardUp; }

class Compactor {
 public:
  explicit Compactor(SlotGrid& grid) : grid_(grid), weights_(grid.has_weight_grads()) {
    for (int rank = 0; rank < grid.ranks(); ++rank) {
      rows_.push_back(grid.row(rank));
      most_held_ = std::max(most_held_, held(rows_.back()));
    }
  }

  void run() {
    enum { Before, Middle, After } phase = Before;
    for (const SlotGrid::Place& place : grid_.places()) {
      const bool first_is_back = place.rank == 0 && place.pass == kInputGradDown;
      if (phase == Before && first_is_back) phase = Middle;
      if (phase == After || (phase == Before && weights_)) advance(place);
      const bool last_enters = place.pass == kForwardDown && place.index + 1 == grid_.microbatches();
      if (phase == Middle && last_enters) phase = After;
    }
  }

 private:
  // Returns the largest number of chunks held at once in a row. If the grid has no W, an empty slot counts as a W while
  // an input gradient is pending.
  int held(const std::vector<int>& row) const {
    int count = 0, most = 0, pending = 0;
    for (const int pass : row) {
      if (is_forward(pass)) most = std::max(most, ++count);
      if (pass == kInputGradUp || pass == kInputGradDown) ++pending;
      const bool weight_grad = pass == kWeightGrad || (!weights_ && pass == SlotGrid::kEmpty && pending > 0);
      if (!weight_grad) continue;
      --count;
      --pending;
    }
    return most;
  }

  void advance(const SlotGrid::Place& place) {
    std::vector<int>& row = rows_[place.rank];
    for (int slot = std::max(0, grid_.after_needs(place)); slot < place.slot; ++slot) {
      if (row[slot] != SlotGrid::kEmpty) continue;
      std::swap(row[slot], row[place.slot]);
      if (held(row) <= most_held_) {
        grid_.move(place, slot);
        return;
      }
      std::swap(row[slot], row[place.slot]);
    }
  }

  SlotGrid& grid_;
  const bool weights_;
  std::vector<std::vector<int>> rows_;  // by rank; passes before the current one have been moved already
  int most_held_ = 0;
};

}  // namespace

void compact(SlotGrid& grid) { Compactor(grid).run(); }

}  // namespace braid::schedule
