// The microbatches of a step as tensors: which samples, cut into tokens and targets.
#pragma once

#include "braid/data/sampler.h"
#include "braid/nn/block.h"
#include "braid/spec/run_spec.h"
#include "braid/train/rank_groups.h"

namespace braid {

// What orders the samples that a run trains on: the seed of their Sampler. And those that it is measured on, the same
// ones for every run.
uint64_t training_order(const TrainSpec& train);
uint64_t evaluation_order();

// What of its samples a stage looks at: the first the tokens, the last the targets, one between them neither.
struct MicrobatchParts {
  bool tokens = true, targets = true;
};

class BatchSource {
 public:
  // `seed` orders the samples of `blend`.
  BatchSource(const RunSpec& spec, const Blend& blend, const RankGroups& groups, uint64_t seed);

  int num_microbatches() const { return num_microbatches_; }  // per rank and step
  int num_global_microbatches() const { return num_global_; }
  // The place of this rank's microbatch `micro` among all of the step.
  int global_micro(int micro) const { return first_micro_ + micro; }
  // This rank's microbatch `micro` of step `step`: of its b x t tokens and targets the `parts`, and nothing else is
  // read; with data.attention "document" also the document of its sequence each token is of. Throws IoError where a
  // token file is damaged.
  Microbatch microbatch(int64_t step, int micro, MicrobatchParts parts = {}) const;
  // How many of that microbatch's sequences, its first, are among the run's first `count`.
  int64_t num_before(int64_t count, int64_t step, int micro) const;
  // Of the tokens and the targets that `read` holds, on the host: that microbatch as it came. Added up over all
  // microbatches of a step (modulo 2^64), tokens and targets counted once each, it is the same on every mesh.
  uint64_t hash(int64_t step, int micro, const Microbatch& read) const;

 private:
  int64_t first_of(int64_t step, int micro) const;
  at::Tensor tokens(int64_t first_sample, int64_t first_token) const;
  at::Tensor documents(int64_t first) const;

  Sampler sampler_;
  uint64_t dropout_key_;
  int batch_, microbatch_, context_;
  bool by_document_;
  int first_micro_, num_microbatches_, num_global_;
};

}  // namespace braid
