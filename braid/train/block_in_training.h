// A block of the model as training runs it, timed whole: what its kernels leave of that is autograd, memory that is
// taken anew, and what lies between them.
#pragma once

#include <vector>

#include "braid/train/stage_profile.h"

namespace braid::train {

class BlockInTraining {
 public:
  // A microbatch of `spec`, whose tensor ranks are one; `self`, which outlives this, is a rank by itself.
  BlockInTraining(const RunSpec& spec, Communicator& self);

  double round();          // returns its seconds
  double seconds() const;  // the median of the rounds
  // Returns the bytes that predictions count for passes over memory (plan/block_work.h), forward and backward.
  double streamed_bytes() const;

 private:
  const RunSpec spec_;
  const param::ModelParams params_;
  ModelSample sample_;
  const ModelSample::Piece piece_;
  std::vector<double> seconds_;
};

}  // namespace braid::train
