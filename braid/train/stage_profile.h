// Measures the parts of a model on this machine: time and memory of one microbatch, for each part. Partitions the model
// by these costs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "braid/nn/model.h"
#include "braid/nn/segments.h"
#include "braid/param/grad_sink.h"
#include "braid/plan/partition.h"
#include "braid/spec/recompute.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the best partition of the run's model for its schedule, by the costs of `units` (profiled_units()),
// pipeline.speeds and memory.limit_gb. Throws ConfigError if no partition fits the limit.
plan::Partition best_partition(const RunSpec& spec, std::vector<plan::Unit> units);

// Replaces pipeline.partition = "measured" in `spec` by a list. Takes the list of the checkpoint in train.resume if it
// has the same numbers of stages and layers. Otherwise measures a partition, with `threads` threads per rank, and
// returns it. Called before any rank of the run starts. Throws IoError, and as best_partition() does.
std::optional<plan::Partition> resolve_partition(RunSpec& spec, int threads);

// Seconds of each pass of a microbatch.
struct PassTimes {
  double forward = 0, input_grad = 0, weight_grad = 0;
};

// Parameters and a microbatch of a model, to run and time its pieces one at a time.
class ModelSample {
 public:
  // `params` are those of blocks of the model of `spec`, whose vocabulary is resolved. Pieces recompute as the first
  // stage does. With mesh.context > 1 all ranks of `context` make the same calls. `spec`, `tensor` and the ranks of
  // `context` outlive this.
  ModelSample(const RunSpec& spec, const layout::ModelParams& params, Communicator& tensor,
              const nn::ContextGroup& context = {});

  const param::ParamStore& store() const { return store_; }

  // A piece of the model whose parameters the sample has.
  class Piece {
   public:
    Piece(const Piece&) = delete;
    // Runs all passes of the piece and returns their times. If `kept` is not null, sets it to the bytes that forward
    // keeps for backward, by the account of memory.
    PassTimes run(int64_t* kept = nullptr) const;

   private:
    friend class ModelSample;
    Piece(ModelSample& sample, const nn::ModelPiece& piece);
    ModelSample& sample_;
    bool has_input_;
    nn::Segments::Blocks blocks_;
    std::unique_ptr<nn::Segments> segments_;
  };
  Piece piece(const nn::ModelPiece& piece) { return {*this, piece}; }

 private:
  double now() const;
  int64_t kept_bytes() const;

  const RunSpec& spec_;
  at::TensorOptions options_;
  param::ParamStore store_;
  std::unique_ptr<param::GradSink> sink_;
  param::WeightGradQueue queue_;
  spec::Recompute recompute_;
  nn::RankContext rank_;
  nn::Microbatch microbatch_;
  at::Tensor x_btc_;
};

// Returns the num_units() units of the run's model with their costs, measured on microbatches of the run's shape and
// type. Starts its own mesh.context x mesh.tensor ranks (run.ranks), each with `threads` threads. Called before any
// rank of the run starts. REQUIRES: spec.model.vocab is resolved.
//
// Times are medians of the forward, input-gradient and weight-gradient pass over a few runs, on rank 0.
// Recomputation (memory.recompute) counts to the input-gradient pass. Of each kind of transformer block one is measured
// for all; its time is divided in the proportion of its parts. A loss over a large vocabulary computes its
// weight gradient in the forward pass, so it counts there.
//
// Activation bytes are those that forward keeps for backward, outputs included, by the account of memory. They are 0 on
// devices, where memory is not accounted. Fixed bytes are parameters, gradients, optimizer states and masters, the
// partial sums of train.reduction = "reproducible", and on CPUs the copies of checkpoint.async.
std::vector<plan::Unit> profiled_units(const RunSpec& spec, int threads);

}  // namespace braid::train
