// The [train] section: length, batch, numeric types, device, and outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/word.h"
#include "braid/model/objective.h"

namespace braid {

// The order of sums over microbatches and replicas. Fast: any order. Reproducible: the same order on every mesh.
enum class Reduction { Fast, Reproducible };
constexpr auto words(Reduction) { return std::to_array<std::string_view>({"fast", "reproducible"}); }

// The type of weights and activations. The 16-bit types keep float32 master weights.
enum class DType { Float32, Float64, BFloat16, Float16 };
constexpr auto words(DType) { return std::to_array<std::string_view>({"float32", "float64", "bfloat16", "float16"}); }

enum class DeviceKind { Cpu, Cuda };
constexpr auto words(DeviceKind) { return std::to_array<std::string_view>({"cpu", "cuda"}); }

// Auto: on cuda, a microbatch is recorded as a CUDA graph and replayed, if its shapes are fixed.
enum class GraphUse { Auto, Off };
constexpr auto words(GraphUse) { return std::to_array<std::string_view>({"auto", "off"}); }

// The reaction to a spike: an update whose loss or gradient norm is not finite or far above its recent values. Stop
// ends the run, and Skip skips the update. Rollback returns to a checkpoint and skips the samples of the steps since
// then.
enum class OnSpike { Stop, Skip, Rollback };
constexpr auto words(OnSpike) { return std::to_array<std::string_view>({"stop", "skip", "rollback"}); }

// The steps after whose backward the gradient norm is compared with one that is formed tensor by tensor.
enum class NormCheck { FirstStep, EveryStep, Off };
constexpr auto words(NormCheck) { return std::to_array<std::string_view>({"first-step", "every-step", "off"}); }

// The largest scale of the loss, 2^24. A larger one gains nothing.
inline constexpr double kLargestLossScale = 16777216;

struct TrainSpec {
  int steps = 100;
  int batch = 8;       // sequences per step, over all ranks
  int microbatch = 4;  // sequences per forward pass of one rank
  uint64_t seed = 1;
  Objective objective = Objective::Auto;
  Reduction reduction = Reduction::Fast;
  int tensor_parts = 8;  // of the sums that tensor ranks divide, in reproducible mode
  DType dtype = DType::Float32;
  double loss_scale = 65536;  // float16: initial scale of the loss, which adapts
  DeviceKind device = DeviceKind::Cpu;
  GraphUse cuda_graph = GraphUse::Auto;
  double peak_flops = 0;         // peak of one rank, per second, for utilisation; 0: measured with a matrix product
  int threads = 0;               // threads per rank; 0: chosen by threads_per_rank() of rank_hosts.h
  int eval_every = 0;            // steps between evaluations; 0: only at the end
  int eval_sequences = 64;       // held-out sequences per evaluation, always the same ones
  int log_every = 1;             // steps between metrics lines
  int save_every = 0;            // steps between checkpoints; 0: none by steps
  double save_minutes = 15;      // minutes after a checkpoint until the next step is saved; 0: none by time
  std::string out = "runs/run";  // folder for metrics, checkpoints, timeline
  bool overwrite = false;        // remove an earlier run's files from `out`; if false, a used folder is refused
  std::string resume;            // checkpoint or run to continue from
  std::string init;              // initial weights: a Hugging Face directory, a checkpoint or a run; empty: random
  OnSpike on_spike = OnSpike::Stop;
  double spike_threshold = 0;  // standard deviations above the running mean; 0: only non-finite values are spikes
  int check_replicas = 0;      // steps between comparisons of replicated weights and states; 0: never
  NormCheck check = NormCheck::FirstStep;
  // Keys that affect training and may differ from the checkpoint's when the run resumes (change_on_resume.h).
  std::vector<std::string> allow_change = {};
  std::string sample_prompt;  // text to continue at the end of training; empty: none
  int sample_tokens = 200;

  bool operator==(const TrainSpec&) const = default;
};

}  // namespace braid
