// Closed forms of the seconds that a schedule's step takes. They cost microseconds, a simulation milliseconds. They are
// exact for even stages (tests/schedule/closed_forms_test.cpp) and close for others
// (tests/plan/pipeline_estimate_test.cpp).
//
//   p ranks, m microbatches, v stages per rank
//   S seconds of a microbatch on all stages; R seconds of a microbatch on the busiest rank; c seconds of a transfer
//   F, I, W seconds of the passes of the mean stage
//
//   naive                    m (S + 2 (p-1) c)
//   gpipe, 1f1b, pipedream, pipedream-2bw
//                            S + 2 (p-1) c + (m-1) P
//     The period P is the largest of the ranks' seconds per microbatch. For all but gpipe it is also at least the time
//     from rank i to the last and back, divided by the p-i microbatches that may be in flight on rank i.
//   interleaved, looped-bfs  m R + (S - R) / v + (3p-2) c, at least S + 2 (pv-1) c + (m-1) R / v
//     Source: Narayanan et al. (2021), section 2.2.
//   schedules that split the backward
//                            the larger of m S / p + bubble and, over the ranks, of the time until the first microbatch
//                            arrives + the rank's seconds for m microbatches
//     The bubble is that of even stages:
//     zb-h1, zb-1p, interleaved-zb  (p-1) (F + I - W + 2 c), at least (p-1) (F + c)   Qi et al. (2023), table 1
//     zb-h2, zb-2p                  (p-1) (F + I - 2 W), at least (p-1) (F + c)
//     dualpipe                      (p/2-1) (F + 2 I - W + 3 c)                       DeepSeek-V3, table 2;
//                                   without the time until the first microbatch arrives
//     dualpipev                     (p-1) (F + 2 I - W + 3 c)
//   zb-v, v-half, v-min      m R + the bubble of their papers at equal times; for v-min, R is at least the slots + 4 c
#pragma once

#include <vector>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {

// Flush: the next step begins when every rank has ended. PostValidated: each rank begins the next step when it has
// ended itself, so a step takes as long as the longest span of a rank (Qi et al. 2023, section 4). The closed form then
// estimates that span.
enum class StepEnd { Flush, PostValidated };

struct StepFacts {
  int ranks = 1, microbatches = 1;
  int group = 0;  // microbatches that pass a chunk before the next chunk's turn; 0: m / max(1, m / p)
  StagePlacement placement = StagePlacement::Linear;
  std::vector<StageTimes> stages;  // times of each stage
  double transfer = 0;
  StepEnd end = StepEnd::Flush;
};

// The quantities from which the closed forms are computed, named as above.
struct StepSums {
  explicit StepSums(const StepFacts& facts);

  int p, m, v;
  double group;
  double c;
  StepEnd end;
  double forward = 0, input_grad = 0, weight_grad = 0;  // of the mean stage
  std::vector<double> rank;                             // seconds of a microbatch on each rank
  double all = 0;                                       // S
  double busiest = 0;                                   // R
  double fill = 0;                                      // seconds until the first microbatch reaches the last rank
  double longest_after_fill = 0;  // largest of (seconds until a rank's first microbatch + its work)
  double slots = 0;  // seconds of a microbatch on a rank if each pass took as long as the longest of F, I and W
};

// The numbers of (stage, microbatch) pairs in flight on a rank: `activations` wait for their input-gradient pass,
// `pending` only for their weight pass, and `either` for either of the two. No pair counts twice.
struct UnderWay {
  double activations = 0, pending = 0, either = 0;
};

struct ClosedForm {
  double (*seconds)(const StepSums& sums);
  // The result may exceed the stages x microbatches of the rank; callers limit it.
  UnderWay (*under_way)(const StepSums& sums, double rank);
};

namespace closed_forms {
extern const ClosedForm naive, gpipe, one_f_one_b, interleaved, looped_bfs, zb_h1, zb_1p, interleaved_zb, zb_h2, zb_2p,
    zb_v, v_half, v_min, dualpipe, dualpipev;
}

}  // namespace braid::schedule
