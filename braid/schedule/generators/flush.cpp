// The orders of F and B with one stage per rank.
#include "braid/schedule/generators/flush.h"

#include <algorithm>

#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {
namespace {

// Appends `warmup` forwards, then one forward and one backward alternately, then the remaining backwards.
void alternate(Program& program, int rank, int microbatches, int warmup) {
  for (int micro = 0; micro < warmup; ++micro) program.push_back({Op::Forward, rank, micro});
  for (int micro = 0; micro < microbatches; ++micro) {
    if (warmup + micro < microbatches) program.push_back({Op::Forward, rank, warmup + micro});
    program.push_back({Op::FullBackward, rank, micro});
  }
}

// Promises that rank r holds held(r) activations and, because its backwards are full ones, as many pending weight
// gradients.
template <class Held>
void promise(Schedule& schedule, const Held& held) {
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) schedule.promise.peak_activations.push_back(held(rank));
  schedule.promise.peak_pending_weight_grads = schedule.promise.peak_activations;
}

}  // namespace

Schedule naive(int ranks, int microbatches) {
  Schedule schedule = laid_out({"naive", StagePlacement::Linear, ranks, microbatches});
  for (int rank = 0; rank < ranks; ++rank) alternate(schedule.programs[rank], rank, microbatches, 0);
  promise(schedule, [](int) { return 1; });
  return schedule;
}

Schedule gpipe(int ranks, int microbatches) {
  Schedule schedule = laid_out({"gpipe", StagePlacement::Linear, ranks, microbatches});
  for (int rank = 0; rank < ranks; ++rank) alternate(schedule.programs[rank], rank, microbatches, microbatches);
  promise(schedule, [&](int) { return microbatches; });
  return schedule;
}

Schedule one_f_one_b(int ranks, int microbatches) {
  Schedule schedule = laid_out({"1f1b", StagePlacement::Linear, ranks, microbatches});
  for (int rank = 0; rank < ranks; ++rank) {
    alternate(schedule.programs[rank], rank, microbatches, std::min(microbatches, ranks - 1 - rank));
  }
  promise(schedule, [&](int rank) { return std::min(microbatches, ranks - rank); });
  return schedule;
}

}  // namespace braid::schedule
