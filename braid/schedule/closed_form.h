// Closed forms of a schedule's step, which cost microseconds where a simulation costs milliseconds. They are exact for
// even stages, and close for others (tests/plan/pipeline_estimate_test.cpp):
//
//   S seconds of a microbatch on all stages, R on the busiest rank, c of a transfer; p ranks, m microbatches, v stages
//   of a rank; F, I, W of the mean stage
//   one at a time   m (S + 2 (p-1) c)                        naive
//   flushed         S + 2 (p-1) c + (m-1) P                  gpipe, 1f1b, pipedream, pipedream-2bw
//     P, the period: the longest of each rank's seconds and, but for gpipe, of the ways there and back from rank i,
//     over the p-i microbatches that may be under way on it
//   in chunks       m R + (S - R) / v + (3p-2) c             interleaved, looped-bfs (Narayanan et al. 2021, 2.2)
//     at least S + 2 (pv-1) c + (m-1) R / v
//   backward split  the longest of m R, after the first microbatch has come to the rank, and of m S / p + bubble, where
//     bubble is that of even stages:
//                   (p-1) (F + I - W + 2 c)                  zb-h1, zb-1p, interleaved-zb (Qi et al. 2023, table 1)
//                   (p-1) (F + I - 2 W), at least F + c      zb-h2, zb-2p
//                   (p/2-1) or (p-1) (F + 2 I - W + 3 c)     dualpipe, dualpipev (DeepSeek-V3, table 2)
//     and m R + that of their papers at equal times            zb-v, v-half, v-min
//     (tests/schedule/closed_forms_test.cpp)
#pragma once

#include <vector>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {

// Flush: the next step begins when every rank has ended. PostValidated: each rank begins it when it has ended itself,
// so that a step takes the longest span of a rank (Qi et al. 2023, section 4). Estimates are within a rank's span then.
enum class StepEnd { Flush, PostValidated };

struct StepFacts {
  int ranks = 1, microbatches = 1;
  int group = 0;  // microbatches that pass a chunk before the next one's turn; 0: as many as there are ranks, or more
  StagePlacement placement = StagePlacement::Linear;
  std::vector<StageTimes> stages;  // one for each
  double transfer = 0;
  StepEnd end = StepEnd::Flush;
};

// Sums that the forms are written in.
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
  double fill = 0;                                      // until the first microbatch is on the last rank
  double longest_after_fill = 0;                        // of each rank's way to its first microbatch and its work
  double slots = 0;  // of the busiest rank if every pass of a stage took as long as its longest
};

// Stages x microbatches of a rank that wait for their input-gradient pass, beside them for the weight pass, and beside
// those for either of the two.
struct UnderWay {
  double activations = 0, pending = 0, either = 0;
};

struct ClosedForm {
  double (*seconds)(const StepSums& sums);
  UnderWay (*under_way)(const StepSums& sums, double rank);  // not above the stages x microbatches of a rank
};

namespace closed_forms {
extern const ClosedForm naive, gpipe, one_f_one_b, interleaved, looped_bfs, zb_h1, zb_1p, interleaved_zb, zb_h2, zb_2p,
    zb_v, v_half, v_min, dualpipe, dualpipev;
}

}  // namespace braid::schedule
