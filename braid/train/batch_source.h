// The microbatches of a step as tensors: which samples, cut into tokens and targets. It knows no model.
#pragma once

#include "braid/data/sampler.h"
#include "braid/nn/block.h"
#include "braid/spec/run_spec.h"
#include "braid/train/rank_groups.h"

namespace braid {

class BatchSource {
 public:
  // `seed` orders the samples of `blend`.
  BatchSource(const RunSpec& spec, const Blend& blend, const RankGroups& groups, uint64_t seed);

  int num_microbatches() const { return num_microbatches_; }  // per rank and step
  int num_global_microbatches() const { return num_microbatches_ * data_size_; }
  // The place of this rank's microbatch `micro` among all of the step.
  int global_micro(int micro) const { return data_rank_ * num_microbatches_ + micro; }
  // b x t tokens and targets of this rank's microbatch `micro` of step `step`; with data.attention "document" also the
  // document of its sequence each token is of. Throws IoError where a token file is damaged.
  Microbatch microbatch(int64_t step, int micro) const;
  // A hash of all samples of the step, equal on every mesh.
  uint64_t hash(int64_t step) const;

 private:
  at::Tensor documents(int64_t first) const;

  Sampler sampler_;
  uint64_t dropout_key_;
  int batch_, microbatch_, context_;
  bool by_document_;
  int data_rank_, data_size_, num_microbatches_;
};

}  // namespace braid
