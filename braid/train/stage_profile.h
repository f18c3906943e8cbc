// Measures the parts of a model on this machine: time and memory of one microbatch, part by part.
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

// pipeline.partition = "measured" made into a list, before any rank starts.

// The partition of the run's model for its schedule, by the costs of `units` (stage_profile.h), pipeline.speeds and
// memory.limit_gb. Throws ConfigError when nothing fits the limit.
plan::Partition best_partition(const RunSpec& spec, std::vector<plan::Unit> units);

// Replaces "measured" in `spec` by a list: that of the checkpoint in train.resume, if it has equally many stages, else
// one measured now, which is then returned. Throws as best_partition() does, and IoError.
std::optional<plan::Partition> resolve_partition(RunSpec& spec, int threads);

// Pieces of a model, run one at a time on parameters and a microbatch of their own, and timed.

// Seconds of the passes of a microbatch.
struct PassTimes {
  double forward = 0, input_grad = 0, weight_grad = 0;
};

class ModelSample {
 public:
  // On `params`, of blocks of the model of `spec`, whose vocabulary is resolved, with recompute as on the first stage.
  // `spec` and `tensor` outlive this.
  ModelSample(const RunSpec& spec, const param::ModelParams& params, Communicator& tensor);

  const param::ParamStore& store() const { return store_; }

  // A piece whose parameters are there.
  class Piece {
   public:
    Piece(const Piece&) = delete;
    // `kept`, where it is not null, becomes the bytes that the account of memory says are kept from forward to
    // backward.
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

// The num_units() of the run's model, each with the median time of its forward, input-gradient and weight-gradient pass
// over a few runs, on microbatches of the run's shape and type, with `threads` threads on each of mesh.tensor ranks.
// What memory.recompute makes again counts to the input-gradient pass.
// All transformer blocks are alike, so one is measured for all, and its halves share out the time of the whole. A loss
// over a large vocabulary makes its weight gradient in the forward pass, and that is where it is counted.
//
// Bytes of activations are what the account of memory says is kept from a forward to its backward, outputs included
// (none where memory is not accounted, on devices); fixed bytes are parameters, gradients, the optimizer's states and
// masters. `spec.model.vocab` is resolved. No rank runs yet: starts ranks of its own (run.ranks), and the times are
// tensor rank 0's.
std::vector<plan::Unit> profiled_units(const RunSpec& spec, int threads);

}  // namespace braid::train
