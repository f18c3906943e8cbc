// The configuration of a run: plain structs with defaults, one per section of the TOML file. Components that need one
// section include only its header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/data_spec.h"
#include "braid/spec/launch_spec.h"
#include "braid/spec/mesh_spec.h"
#include "braid/spec/model_spec.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/spec/train_spec.h"
#include "braid/spec/word.h"

namespace braid {

// The [memory] section: what a rank may hold, recomputes, or offloads.

// The place of the optimizer's states between updates. Host: Ren et al., "ZeRO-Offload" (2021); Disk: Rajbhandari et
// al., "ZeRO-Infinity" (2021).
enum class OffloadTo { None, Host, Disk };
constexpr auto words(OffloadTo) { return std::to_array<std::string_view>({"none", "host", "disk"}); }

struct MemorySpec {
  std::string recompute = "none";  // what stages keep of a forward for its backward: recompute.h
  double limit_gb = 0;             // of a rank, in 2^30 bytes: what a measured partition keeps to; 0: none
  OffloadTo offload = OffloadTo::None;

  bool operator==(const MemorySpec&) const = default;
};

// The [checkpoint] section: how checkpoints are written, and which of them stay.
struct CheckpointSpec {
  int keep = 0;       // the newest checkpoints, which stay; 0: all
  int keep_best = 0;  // beside those, the ones of the lowest validation loss

  bool async = false;   // written while training goes on, from a copy
  double host_gib = 0;  // async: what that copy may take of a rank's host memory, in 2^30 bytes; 0: what it needs

  bool operator==(const CheckpointSpec&) const = default;
};

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

namespace braid::spec {

// Returns true if replicas train independently: a replica's steps wait for no other replica's, and servers receive
// pushes in any order, so a step's numbers are the replica's own.
inline bool replicas_run_apart(const RunSpec& spec) {
  return spec.sync.replication == ReplicationKind::ParameterServer && spec.sync.consistency != Consistency::Bsp;
}

// Returns the number of data ranks over which one copy of the parameters is sharded; 1 where nothing is.
inline int shard_data(const RunSpec& spec) {
  if (spec.sync.zero == 0) return 1;
  return spec.sync.zero_group == 0 ? spec.mesh.data : spec.sync.zero_group;
}

}  // namespace braid::spec
