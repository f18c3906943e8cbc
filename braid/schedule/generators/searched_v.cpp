// V-Half and V-Min. A pattern is filled with W and compacted twice: first with W at the beginning and the end, then
// without W at the end only.
#include "braid/schedule/generators/searched_v.h"

#include <algorithm>

#include "braid/schedule/generators/program_writer.h"
#include "braid/schedule/generators/slot_grid.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {
namespace {

std::array<int, 4> half_pattern(int p, int r) {
  const int gap = p % 2 == 0 ? 3 : 0;
  return {2 * r, 3 * p - 2 - r, 3 * p - 1 + gap + 2 * r, 6 * p - 2 + gap - r};
}

std::array<int, 4> min_pattern(int p, int r) {
  const int gap = p % 3 == 0 ? 2 : 0;
  return {r, 2 * p - 1 - r, 2 * p + gap + r, 4 * p + gap - 1 - r};
}

SlotGrid built(int ranks, int microbatches, SlotGrid::Pattern pattern) {
  SlotGrid grid(ranks, microbatches, pattern);
  grid.add_weight_grads();
  compact(grid);
  grid.squeeze();
  grid.drop_weight_grads();
  compact(grid);
  grid.add_weight_grads();
  grid.squeeze();
  grid.drop_weight_grads();
  return grid;
}

// Adds the oldest pending weight pass of kUp, whose gradients come first, or else of kDown. Returns false if none is
// pending.
bool weight_grad(ProgramWriter& writer) {
  for (const int chunk : {kUp, kDown}) {
    if (writer.chunk(chunk).weight_grads == writer.chunk(chunk).input_grads) continue;
    writer.weight_grad(chunk);
    return true;
  }
  return false;
}

void write(ProgramWriter& writer, const std::vector<int>& row) {
  for (const int pass : row) {
    if (pass == kForwardDown) writer.forward(kDown);
    if (pass == kForwardUp) writer.forward(kUp);
    if (pass == kInputGradUp) writer.input_grad(kUp);
    if (pass == kInputGradDown) writer.input_grad(kDown);
    if (pass == SlotGrid::kEmpty) weight_grad(writer);
  }
  while (weight_grad(writer)) {
  }
}

Schedule searched(const Layout& layout, SlotGrid::Pattern pattern, int most_held) {
  Schedule schedule = laid_out(layout);
  const SlotGrid grid = built(layout.ranks, layout.microbatches, pattern);
  for (int rank = 0; rank < layout.ranks; ++rank) {
    ProgramWriter writer(schedule.programs[rank], {{rank}, {2 * layout.ranks - 1 - rank}});
    write(writer, grid.row(rank));
  }
  schedule.promise.peak_activations.assign(layout.ranks, std::min(most_held, 2 * layout.microbatches));
  schedule.promise.peak_pending_weight_grads = schedule.promise.peak_activations;
  return schedule;
}

}  // namespace

Schedule v_half(int ranks, int microbatches) {
  return searched({"v-half", StagePlacement::V, ranks, microbatches, 2, 3}, half_pattern, 2 * ((ranks + 2) / 2));
}

Schedule v_min(int ranks, int microbatches) {
  return searched({"v-min", StagePlacement::V, ranks, microbatches, 2, 3}, min_pattern, 2 * ((ranks + 4) / 3));
}

}  // namespace braid::schedule
