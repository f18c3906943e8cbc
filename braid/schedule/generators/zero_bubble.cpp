// One rule for both handcrafted schedules; they differ in a factor.
#include "braid/schedule/generators/zero_bubble.h"

#include <algorithm>

#include "braid/schedule/generators/program_writer.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {
namespace {

// Rank r is `factor` (p-1-r) forwards ahead and `factor` r weight passes behind.
Schedule handcrafted(const char* name, int ranks, int microbatches, int factor) {
  Schedule schedule = laid_out({name, StagePlacement::Linear, ranks, microbatches, 1, 3});
  for (int rank = 0; rank < ranks; ++rank) {
    ProgramWriter writer(schedule.programs[rank], {{rank}});
    const int ahead = factor * (ranks - 1 - rank);
    const int behind = factor * rank;
    for (int k = 0; k < std::min(microbatches, ahead); ++k) writer.forward(0);
    for (int k = 0; k < microbatches; ++k) {
      if (ahead + k < microbatches) writer.forward(0);
      writer.input_grad(0);
      if (k >= behind) writer.weight_grad(0);
    }
    while (writer.chunk(0).weight_grads < microbatches) writer.weight_grad(0);
    schedule.promise.peak_activations.push_back(std::min(microbatches, ahead + 1));
    schedule.promise.peak_pending_weight_grads.push_back(std::min(microbatches, ahead + 1 + behind));
  }
  return schedule;
}

}  // namespace

Schedule zb_h1(int ranks, int microbatches) { return handcrafted("zb-h1", ranks, microbatches, 1); }

Schedule zb_h2(int ranks, int microbatches) { return handcrafted("zb-h2", ranks, microbatches, 2); }

}  // namespace braid::schedule
