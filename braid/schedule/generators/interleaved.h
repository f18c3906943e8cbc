// Schedules of several stages (chunks) per rank in a loop: chunk c of rank r is stage c p + r. Microbatches pass in
// groups of N. All microbatches of a group pass a chunk before the next chunk's turn; the last group may be smaller. v
// is request.chunks, or 2 if that is 0. In the pictures every action takes one column, p = 2, m = 4, v = 2.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

// A pass of a microbatch through one chunk.
struct ChunkPass {
  int micro = 0;
  int chunk = 0;
  bool operator==(const ChunkPass&) const = default;
};

// Returns the forwards of a rank in order. Its backwards have the same order, with chunks counted from the last.
// Source: Megatron-LM, megatron/core/pipeline_parallel/schedules.py, get_schedule_table.
std::vector<ChunkPass> chunk_passes(int microbatches, int chunks, int group);

// Returns the problems of a request. N = request.group must satisfy p <= N <= m, and m mod N must be 0 or at least p
// (Megatron-LM). If request.group is 0, there are max(1, m / p) groups of the same size, and their number must divide m
// (PyTorch).
std::vector<Problem> interleaved_problems(const ScheduleRequest& request);

// Returns 1F1B over chunks. Rank r warms up with w = min(mv, 2(p-1-r) + (v-1)N) forwards, then alternates forwards and
// backwards, then drains. The bubble is (p-1)(F+B)/v for m >= p. Rank r holds min(mv, w+1) activations of a chunk.
//
//   rank 0  0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 .   2B2 .   2B3 0B2 0B3
//   rank 1  .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3
//
// Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters" (2021), section 2.2;
// PyTorch's ScheduleInterleaved1F1B; Megatron-LM's forward_backward_pipelining_with_interleaving.
Schedule interleaved(const ScheduleRequest& request);

// Returns the interleaved schedule with a split backward. Rank r warms up with w = min(mv, p-1-r + (v-1)N) forwards,
// and its weight passes run r passes behind its input-gradient passes. It holds min(mv, w+1) activations and
// min(mv, w+1+r) pending weight gradients of a chunk.
//
//   rank 0  0F0 0F1 2F0 2F1 .   2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3
//   rank 1  .   1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3
//
// Source: PyTorch's ScheduleInterleavedZeroBubble.
Schedule interleaved_zero_bubble(const ScheduleRequest& request);

// Returns the breadth-first schedule: the forwards of the first chunk, then of the second, and so on; then the
// backwards of the last chunk, and so on, with microbatches descending. The bubble is (p-1)(F+B)/v for m >= p. A rank
// holds the activations of all microbatches. Any m is valid.
//
//   rank 0  0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3 .   .   2B3 2B2 2B1 2B0 0B3 0B2 0B1 0B0
//   rank 1  .   1F0 1F1 1F2 1F3 3F0 3F1 3F2 3F3 3B3 3B2 3B1 3B0 1B3 1B2 1B1 1B0
//
// Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism" (2023); the descending backward is PyTorch's
// ScheduleLoopedBFS.
Schedule looped_bfs(const ScheduleRequest& request);

}  // namespace braid::schedule
