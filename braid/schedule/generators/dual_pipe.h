// DualPipe and DualPipeV, its V-shaped variant. Forwards and backwards of different microbatches overlap as fused
// pairs. In the pictures every action and every pair takes one column, p = 2, m = 4.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns the problems of a request: p and m must be even, and m >= 2p.
std::vector<Problem> dual_pipe_problems(const ScheduleRequest& request);

// Returns the bidirectional schedule. Rank r has a copy of stages r and p-1-r. Microbatches 0 .. m/2-1 enter at rank 0,
// the others at rank p-1. Every rank holds p+1 activations. The bubble is (p/2-1)(F&B + B - 3W), where F&B is the time
// of a fused pair.
//
//   rank 0  0F0     1F2     0F1     1B2     1F3&0B0 1B3     0I1     0W1
//   rank 1  0F2     1F0     0F3     1B0     1F1&0B2 1B1     0I3     0W3
//
// Source: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 3.2.1; github.com/deepseek-ai/DualPipe,
// dualpipe/dualpipe.py.
Schedule dual_pipe(int ranks, int microbatches);

// Returns the problems of a request: m >= 2p must hold.
std::vector<Problem> dual_pipe_v_problems(const ScheduleRequest& request);

// Returns the V-shaped schedule. Rank r has stages r and 2p-1-r. A microbatch returns to the rank where it entered, so
// one copy of the parameters is enough. Every rank holds 2p+1 activations of a stage.
//
//   rank 0  0F0     0F1     0F2     3F0     3I0     3W0     3F1     0F3&3B1 ...
//   rank 1  .       1F0     2F0     1F1     2F1     1F2     2B0     2F2&1B0 ...
//
//   rank 0  ... 3F2&0B0 3B2     3F3&0B1 3B3     0I2     0W2     0I3     0W3
//   rank 1  ... 1F3&2B1 2F3&1B1 2B2     1B2     2I3     1I3     2W3     1W3
//
// Source: the same repository, dualpipe/dualpipev.py; PyTorch's ScheduleDualPipeV.
Schedule dual_pipe_v(int ranks, int microbatches);

}  // namespace braid::schedule
