// The configuration of a run: plain structs with defaults, one per section of the TOML file. Components that need one
// section include only its header.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/word.h"
#include "braid/model/model_spec.h"
#include "braid/spec/data_spec.h"
#include "braid/spec/launch_spec.h"
#include "braid/spec/mesh_spec.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/spec/train_spec.h"

namespace braid {

// The place of a kind of tensors between their uses. Resident: the device's memory. Host: Ren et al., "ZeRO-Offload"
// (2021); Disk: Rajbhandari et al., "ZeRO-Infinity" (2021). Auto: resident where memory.limit_gb allows it, else disk;
// it stands for Resident until a run has resolved it.
enum class Tier { Auto, Resident, Host, Disk };
constexpr auto words(Tier) { return std::to_array<std::string_view>({"auto", "resident", "host", "disk"}); }
constexpr bool is_resident(Tier tier) { return tier == Tier::Auto || tier == Tier::Resident; }

// An update of tensors on disk holds this number of chunks of each: one is read, one updated, one written.
inline constexpr int kChunksInMemory = 3;
// The memory of chunks that are not small begins at a large page: disks transfer such pages more than twice as fast
// (bench/disk).
inline constexpr int64_t kLargePage = int64_t{2} << 20;
constexpr int64_t chunk_alignment(int64_t bytes) { return bytes >= 4 * kLargePage ? kLargePage : 4096; }

// The [memory] section: the limit of a rank's memory, recomputation, and the tiers of tensors.
struct MemorySpec {
  std::string recompute = "none";         // activations that stages keep for backward (recompute.h)
  double limit_gb = 0;                    // memory that a rank may use, in 2^30 bytes; 0: no limit
  Tier optimizer = Tier::Auto;            // the optimizer's states, with float32 masters of 16-bit weights
  Tier gradients = Tier::Auto;            // sums of gradients over microbatches
  Tier parameters = Tier::Auto;           // weights of blocks, while no block runs with them
  Tier activations = Tier::Auto;          // what forward keeps for backward
  std::string activation_blocks = "all";  // blocks of a stage whose activations are there (activation_blocks.h)
  std::vector<std::string> paths = {};    // folders of what is on disk, in stripes; empty: train.out
  double chunk_mb = 4;                    // of each state, in 2^20 bytes: moved by an update at a time

  bool operator==(const MemorySpec&) const = default;
};

// Returns memory.limit_gb in bytes.
inline int64_t limit_bytes(const MemorySpec& memory) { return std::llround(std::ldexp(memory.limit_gb, 30)); }

// Returns the bytes that a rank's limit leaves for parameters on disk to stay in memory during a step, beside all else
// that it holds. 2 % of the limit stay free, since a peak may be predicted that much too low.
constexpr int64_t bytes_for_parameters(int64_t limit, int64_t beside) { return limit - limit / 50 - beside; }

// The [checkpoint] section: how checkpoints are written, and which of them are kept.
struct CheckpointSpec {
  int keep = 0;       // number of newest checkpoints to keep; 0: all
  int keep_best = 0;  // number of checkpoints with the lowest validation loss to keep in addition

  bool async = false;   // checkpoints are written from a copy while training continues
  double host_gib = 0;  // async: limit of that copy in each rank's host memory, in 2^30 bytes; 0: no limit

  bool operator==(const CheckpointSpec&) const = default;
};

// The version of its weights that a stage uses for a microbatch, under asynchronous schedules
// (schedule/version_plan.h).
enum class StageWeights { Own, Vertical };
constexpr auto words(StageWeights) { return std::to_array<std::string_view>({"own", "vertical"}); }

struct PipelineSpec {
  std::string schedule = "1f1b";  // schedule/generators.h, or file:PATH, an action table as CSV
  int chunks = 0;                 // stages per rank, if the schedule leaves it open; 0: 2
  int group = 0;  // microbatches per turn of a virtual stage (interleaved) or per update; 0: the schedule's default
  StageWeights weights = StageWeights::Own;
  std::string partition = "even";   // even, measured, or the transformer blocks of each stage, "3,2.5,2.5"
  std::vector<double> speeds = {};  // relative speed of each pipeline rank; empty: equal

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

// Returns true if replicas train independently. No replica then waits for the steps of another. Servers receive pushes
// in any order, so the numbers of a step are those of one replica.
inline bool replicas_run_apart(const RunSpec& spec) {
  return spec.sync.replication == ReplicationKind::ParameterServer && spec.sync.consistency != Consistency::Bsp;
}

// Returns `spec` with a vocabulary that is padded alike on every number of tensor ranks if the reduction is
// reproducible.
inline RunSpec with_parts(RunSpec spec) {
  int& parts = spec.model.vocab_parts;
  if (spec.train.reduction == Reduction::Reproducible) parts = std::max(parts, spec.train.tensor_parts);
  return spec;
}

// Returns the number of ranks of the run: those of the mesh, then the servers that are ranks of their own.
inline int64_t num_world_ranks(const RunSpec& spec) { return num_ranks(spec.mesh) + num_server_ranks(spec.sync); }

// Returns the number of data and context ranks over which one copy of the parameters is sharded; 1 without sharding.
inline int num_shards(const RunSpec& spec) {
  if (spec.sync.zero == 0) return 1;
  return spec.mesh.context * (spec.sync.zero_group == 0 ? spec.mesh.data : spec.sync.zero_group);
}

}  // namespace braid::spec
