// The configuration of a run: plain structs with defaults, one per section of the TOML file. Components that need one
// section include only its header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/checkpoint_spec.h"
#include "braid/spec/data_spec.h"
#include "braid/spec/launch_spec.h"
#include "braid/spec/memory_spec.h"
#include "braid/spec/mesh_spec.h"
#include "braid/spec/model_spec.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/spec/train_spec.h"

namespace braid {

// Asynchronous schedules: which version of its weights a stage uses for a microbatch (schedule/version_plan.h).
enum class StageWeights { Own, Vertical };
constexpr auto words(StageWeights) { return std::to_array<std::string_view>({"own", "vertical"}); }

struct PipelineSpec {
  std::string schedule = "1f1b";  // schedule/generators.h, or file:PATH, an action table as CSV
  int chunks = 0;                 // stages per rank where the schedule leaves it open; 0: 2
  int group = 0;  // microbatches that pass a chunk before the next chunk's turn, or an update takes; 0: the schedule's
  StageWeights weights = StageWeights::Own;
  std::string partition = "even";   // even, measured, or the transformer blocks of each stage, "3,2.5,2.5"
  std::vector<double> speeds = {};  // of each pipeline rank, relative; empty: equal

  bool operator==(const PipelineSpec&) const = default;
};

struct RunSpec {
  ModelSpec model;
  DataSpec data;
  MeshSpec mesh;
  PipelineSpec pipeline;
  SyncSpec sync;
  MemorySpec memory;
  OptimizerSpec optimizer;
  TrainSpec train;
  CheckpointSpec checkpoint;
  LaunchSpec run;

  bool operator==(const RunSpec&) const = default;
};

}  // namespace braid
