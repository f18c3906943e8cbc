// The microbatches of a step as tensors: chooses their samples and cuts them into tokens and targets.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "braid/data/masked_sequences.h"
#include "braid/data/sampler.h"
#include "braid/nn/block.h"
#include "braid/spec/run_spec.h"
#include "braid/train/groups.h"

namespace braid::train {

// Return the seeds of the Samplers for training and for evaluation. Evaluation has the same samples in every run.
uint64_t training_order(const TrainSpec& train);
uint64_t evaluation_order();

// The parts of its samples that a stage reads: the first stage reads tokens, the last reads targets, others neither.
struct MicrobatchParts {
  bool tokens = true, targets = true;
};

// The samples of a blend in the order of `seed`. `mask`: for a masked family.
struct SampleSource {
  const data::Blend& blend;
  uint64_t seed = 0;
  std::optional<data::MaskTokens> mask = {};
};

// Used by one thread.
class BatchSource {
 public:
  BatchSource(const RunSpec& spec, const SampleSource& source, const Groups& groups);

  // Makes the samples those of another data rank, which has as many microbatches in a step.
  void read_for(int data_rank);
  int num_microbatches() const { return num_microbatches_; }  // of this rank, in a step
  int num_global_microbatches() const { return num_global_; }
  // Returns the index of this rank's microbatch `micro` among all microbatches of the step.
  int global_micro(int micro) const { return first_micro_ + micro; }
  // Returns this rank's microbatch `micro` of step `step`. Reads only the `parts` of its b x t tokens and targets.
  // With data.attention "document" it also has each token's document within the sequence. Throws IoError if a token
  // file is damaged.
  nn::Microbatch microbatch(int64_t step, int micro, MicrobatchParts parts = {}) const;
  // Returns this context rank's part of the tokens and targets of `read`, whose sequences are whole. Its documents stay
  // whole. The parts' losses add up to the mean loss of all targets.
  nn::Microbatch own_tokens(nn::Microbatch read) const;
  // Returns Microbatch::num_targets for the first `count` sequences of a microbatch in an evaluation of `sequences`
  // sequences: `count` times the mean number of targets. So the mean over sequences is that over targets. 0 if all
  // sequences have as many.
  double targets_in_evaluation(int64_t sequences, int64_t count) const;
  // Returns how many of that microbatch's sequences are among the run's first `count` sequences.
  int64_t num_before(int64_t count, int64_t step, int micro) const;
  // Returns a hash of the tokens and targets of `read`, which is that microbatch on the host. The sum of these hashes
  // over all microbatches of a step (modulo 2^64) is the same on every mesh, if tokens and targets count once each.
  uint64_t hash(int64_t step, int micro, const nn::Microbatch& read) const;

 private:
  int64_t first_of(int64_t step, int micro) const;
  at::Tensor tokens(int64_t first_sample, int64_t first_token) const;
  at::Tensor documents(int64_t first) const;
  void read_masked(int64_t first, MicrobatchParts parts, nn::Microbatch& microbatch) const;
  double targets_of(int64_t first, int64_t count) const;

  const std::vector<int> first_micros_;        // by data rank
  std::optional<data::Sampler> sampler_;       // of a causal family
  std::optional<data::MaskedSampler> masked_;  // of a masked one
  uint64_t dropout_key_;
  int batch_, microbatch_, context_;
  bool by_document_, padded_;
  kernels::TokenPart part_;  // the tokens of each sequence that this rank has
  int first_micro_, num_microbatches_, num_global_;
  mutable std::pair<std::pair<int64_t, int64_t>, double> last_targets_{};  // the last call of targets_of(), its result
};

}  // namespace braid::train
