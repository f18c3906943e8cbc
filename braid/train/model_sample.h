// Pieces of a model, run one at a time on parameters and a microbatch of their own, and timed.
#pragma once

#include <memory>
#include <vector>

#include "braid/nn/model.h"
#include "braid/nn/segments.h"
#include "braid/param/grad_sink.h"
#include "braid/spec/recompute.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

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

}  // namespace braid::train
