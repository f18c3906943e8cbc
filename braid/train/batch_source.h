// The microbatches of a step as tensors: which samples, cut into tokens and targets.
#pragma once

#include "braid/data/sampler.h"
#include "braid/nn/block.h"
#include "braid/spec/run_spec.h"
#include "braid/train/rank_groups.h"

namespace braid::train {

// Return the seeds of the Samplers for training, and for evaluation, whose samples are the same in every run.
uint64_t training_order(const TrainSpec& train);
uint64_t evaluation_order();

// The parts of its samples that a stage reads: the first the tokens, the last the targets, others neither.
struct MicrobatchParts {
  bool tokens = true, targets = true;
};

class BatchSource {
 public:
  // `seed` orders the samples of `blend`.
  BatchSource(const RunSpec& spec, const data::Blend& blend, const RankGroups& groups, uint64_t seed);

  int num_microbatches() const { return num_microbatches_; }  // per rank and step
  int num_global_microbatches() const { return num_global_; }
  // The place of this rank's microbatch `micro` among all of the step.
  int global_micro(int micro) const { return first_micro_ + micro; }
  // This rank's microbatch `micro` of step `step`: of its b x t tokens and targets the `parts`, and nothing else is
  // read; with data.attention "document" also the document of its sequence each token is of. Throws IoError where a
  // token file is damaged.
  nn::Microbatch microbatch(int64_t step, int micro, MicrobatchParts parts = {}) const;
  // Returns how many of that microbatch's sequences are among the run's first `count`. These are its first ones.
  int64_t num_before(int64_t count, int64_t step, int micro) const;
  // Returns a hash of the tokens and targets of `read`, which is that microbatch on the host. Its sum over all
  // microbatches of a step (modulo 2^64), tokens and targets counted once each, is the same on every mesh.
  uint64_t hash(int64_t step, int micro, const nn::Microbatch& read) const;

 private:
  int64_t first_of(int64_t step, int micro) const;
  at::Tensor tokens(int64_t first_sample, int64_t first_token) const;
  at::Tensor documents(int64_t first) const;

  data::Sampler sampler_;
  uint64_t dropout_key_;
  int batch_, microbatch_, context_;
  bool by_document_;
  int first_micro_, num_microbatches_, num_global_;
};

}  // namespace braid::train
