// What a run is: plain structs with defaults, one per section of the TOML file. Rooms that need one section include its
// header alone.
// It knows nothing of torch, of how values are parsed (fields.h) or of what is legal together (problems.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/data_spec.h"
#include "braid/spec/memory_spec.h"
#include "braid/spec/mesh_spec.h"
#include "braid/spec/model_spec.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"

namespace braid {

struct PipelineSpec {
  std::string schedule = "1f1b";  // schedule_kind.h, or file:PATH, an action table as CSV
  int chunks = 0;                 // stages per rank where the schedule leaves it open; 0: 2
  int group = 0;  // microbatches that pass a chunk before the next chunk's turn, or an update takes; 0: the schedule's
  std::string weights = "own";      // asynchronous: own or vertical, which version a microbatch sees on a stage
  std::string partition = "even";   // even, measured, or the transformer blocks of each stage, "3,2.5,2.5"
  std::vector<double> speeds = {};  // of each pipeline rank, relative; empty: equal

  bool operator==(const PipelineSpec&) const = default;
};

struct TrainSpec {
  int steps = 100;
  int batch = 8;       // sequences per step, over all ranks
  int microbatch = 4;  // sequences per forward pass of one rank
  uint64_t seed = 1;
  std::string reduction = "fast";   // fast or reproducible
  std::string dtype = "float32";    // float32, float64, bfloat16 or float16; the last two keep float32 master weights
  double loss_scale = 65536;        // float16: the first scale of the loss; it adapts
  std::string device = "cpu";       // cpu or cuda
  std::string cuda_graph = "auto";  // auto: microbatches are recorded and replayed on cuda where shapes are fixed; off
  double peak_flops = 0;         // of one rank, that utilisation is measured against; 0: measured with a matrix product
  int threads = 0;               // per rank; 0: as suits the model, at most cores / ranks; 1 in reproducible mode
  int eval_every = 0;            // steps between evaluations; 0: only at the end
  int eval_sequences = 64;       // held-out sequences per evaluation, always the same ones
  int log_every = 1;             // steps between metrics lines
  int save_every = 0;            // steps between checkpoints; 0: not by steps
  double save_minutes = 15;      // minutes after which the next step is saved; 0: not by time
  std::string out = "runs/run";  // folder for metrics, checkpoints, timeline
  bool overwrite = false;        // what an earlier run left in it is removed; else a used folder is refused
  std::string resume;            // checkpoint or run to continue from
  std::string sample_prompt;     // generate from this at the end; empty: do not
  int sample_tokens = 200;

  bool operator==(const TrainSpec&) const = default;
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

  bool operator==(const RunSpec&) const = default;
};

}  // namespace braid
