// The [train] section: how long, in which numbers, on what, and what is written when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/word.h"

namespace braid {

// Sums over microbatches and replicas: in any order, or in one order for every mesh.
enum class Reduction { Fast, Reproducible };
constexpr auto words(Reduction) { return std::to_array<std::string_view>({"fast", "reproducible"}); }

// The type of weights and activations. The 16-bit types keep float32 master weights.
enum class DType { Float32, Float64, BFloat16, Float16 };
constexpr auto words(DType) { return std::to_array<std::string_view>({"float32", "float64", "bfloat16", "float16"}); }

enum class DeviceKind { Cpu, Cuda };
constexpr auto words(DeviceKind) { return std::to_array<std::string_view>({"cpu", "cuda"}); }

// Auto: microbatches are recorded and replayed on cuda where shapes are fixed.
enum class GraphUse { Auto, Off };
constexpr auto words(GraphUse) { return std::to_array<std::string_view>({"auto", "off"}); }

// Before an update whose loss or gradient norm is not finite, or far above what it has been lately: the run ends, or
// goes on without the update, or goes back to a checkpoint and on past the samples of the steps since.
enum class OnSpike { Stop, Skip, Rollback };
constexpr auto words(OnSpike) { return std::to_array<std::string_view>({"stop", "skip", "rollback"}); }

// 2^24: beyond it a larger scale of the loss gains nothing.
inline constexpr double kLargestLossScale = 16777216;

struct TrainSpec {
  int steps = 100;
  int batch = 8;       // sequences per step, over all ranks
  int microbatch = 4;  // sequences per forward pass of one rank
  uint64_t seed = 1;
  Reduction reduction = Reduction::Fast;
  DType dtype = DType::Float32;
  double loss_scale = 65536;  // float16: the first scale of the loss; it adapts
  DeviceKind device = DeviceKind::Cpu;
  GraphUse cuda_graph = GraphUse::Auto;
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
  std::string init;              // weights to begin with: a Hugging Face directory, a checkpoint or a run; empty: drawn
  OnSpike on_spike = OnSpike::Stop;
  double spike_threshold = 0;  // standard deviations above the running mean; 0: only what is not finite is a spike
  int check_replicas = 0;      // steps between comparisons of what ranks hold copies of; 0: never
  // Keys of the training that may have another value than in the checkpoint (change_on_resume.h).
  std::vector<std::string> allow_change = {};
  std::string sample_prompt;  // generate from this at the end; empty: do not
  int sample_tokens = 200;

  bool operator==(const TrainSpec&) const = default;
};

}  // namespace braid
