// The time of a pipeline's step and the memory of its ranks, from the times and sizes of its stages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/timeline.h"

namespace braid::plan {

// The method that predicts a pipeline.
//
//   Played      generates the schedule and simulates it; a schedule of more than kMostActions actions is Estimated
//   Estimated   uses the schedule's closed form (schedule/closed_form.h). If p ranks share C cores, a step of m
//               microbatches with S seconds each takes at least m S / C, and each rank is busy p / C times as long.
enum class PipelineDetail { Estimated, Played };
inline constexpr int64_t kMostActions = 400'000;

// The part of a simulation that an outcome keeps. A timeline takes 24 bytes for each action.
enum class KeptOutcome { Numbers, Timeline };

// The bytes that a rank holds for one stage and one microbatch.
struct HeldBytes {
  double activation = 0;       // held from the forward to the input-gradient pass
  double pending = 0;          // held from there to the weight-gradient pass, if the two are separate
  double working = 0;          // held while a backward runs, in addition to what was held before it
  double weight_working = 0;   // the same of a separate weight-gradient pass
  double forward_working = 0;  // held while a forward runs, in addition to what it keeps
  // Copies of what moves to a tier stay in memory while the next segment runs (nn/segments.h).
  double copies_left = 0;    // those of a forward's last segment, if another pass runs next
  double beside_copies = 0;  // held in a forward's first segment in addition to such copies
  double last_moved = 0;     // those that are not read, if the backward follows its forward at once
};

struct PipelineQuestion {
  std::string schedule;                      // a name of schedule/generators.h
  ScheduleRequest request;                   // ranks, microbatches, chunks, group; times are set from `stages`
  std::vector<schedule::StageTimes> stages;  // times of each stage
  std::vector<HeldBytes> held;               // memory of each stage
  std::vector<StageBackward> backwards;      // by stage; empty: all are whole
  double transfer = 0;                       // seconds to send one tensor between stages
  double received_bytes = 0;                 // bytes of one tensor between stages; 0: these are not counted
  schedule::StepEnd end = schedule::StepEnd::Flush;
  const Schedule* table = nullptr;  // a schedule to play instead of `schedule`; null: none
  double cores = 0;                 // number of cores that the ranks share (schedule/simulate.h); 0: each has its own
  KeptOutcome kept = KeptOutcome::Numbers;
};

struct PipelineOutcome {
  double seconds = 0;
  double busiest_seconds = 0;          // busy time of the busiest rank, including waits for a core
  std::vector<double> held_bytes;      // the most that each rank holds at a time
  std::vector<double> received_bytes;  // with tensors between ranks, each holds so much more at most; empty: Estimated
  std::vector<double> found_bytes;     // HeldBytes::last_moved of those backwards of a rank that follow at once
  schedule::Timeline timeline;         // with transfers; empty unless `kept` asks for it and the pipeline is Played
};

// Predicts a pipeline. REQUIRES: schedule_problems() (schedule/generators.h) finds no problem in `question`.
PipelineOutcome pipeline_outcome(const PipelineQuestion& question, PipelineDetail detail);

}  // namespace braid::plan
