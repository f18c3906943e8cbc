// The time of a pipeline's step and the memory of its ranks, from the times and sizes of its stages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/generators.h"

namespace braid::plan {

// Played: the schedule is made and simulated, unless it has more than kMostActions actions. Estimated: closed forms of
// the schedules' papers, which cost microseconds:
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
//
// Ranks that share C cores take m S / C at least, and each is busy p / C times as long.
enum class PipelineDetail { Estimated, Played };
inline constexpr int64_t kMostActions = 400'000;

// Flush: the next step begins when every rank has ended. PostValidated: each rank begins it when it has ended itself,
// so that a step takes the longest span of a rank (Qi et al. 2023, section 4). Estimates are within a rank's span then.
enum class StepEnd { Flush, PostValidated };

// The bytes held for one stage and microbatch.
struct HeldBytes {
  double activation = 0;  // from its forward to the input-gradient pass
  double pending = 0;     // from there to the weight-gradient pass, where these are apart
  double working = 0;     // while a pass runs
};

struct PipelineQuestion {
  std::string schedule;     // a name of schedule/generators.h
  ScheduleRequest request;  // ranks, microbatches, chunks, group; the times are filled in from the stages
  std::vector<schedule::StageTimes> stages;  // one for each
  std::vector<HeldBytes> held;               // one for each
  double transfer = 0;
  StepEnd end = StepEnd::Flush;
  const Schedule* table = nullptr;  // to play in place of `schedule`; null: none
  double cores = 0;                 // that the ranks share (schedule/simulate.h); 0: each has its own
};

struct PipelineOutcome {
  double seconds = 0;
  double busiest_seconds = 0;      // of the rank that computes longest, with waits for a core
  std::vector<double> held_bytes;  // of each rank, at its fullest
};

// `question` is one that schedule_problems() has nothing against.
PipelineOutcome pipeline_outcome(const PipelineQuestion& question, PipelineDetail detail);

}  // namespace braid::plan
