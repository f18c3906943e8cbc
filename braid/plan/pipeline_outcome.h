// The time of a pipeline's step and the memory of its ranks, from the times and sizes of its stages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/generators.h"

namespace braid::plan {

// Played: the schedule is made and simulated, unless it has more than kMostActions actions. Estimated: by its closed
// form (schedule/closed_form.h).
//
// Ranks that share C cores take m S / C at least, and each is busy p / C times as long.
enum class PipelineDetail { Estimated, Played };
inline constexpr int64_t kMostActions = 400'000;

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
  schedule::StepEnd end = schedule::StepEnd::Flush;
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
