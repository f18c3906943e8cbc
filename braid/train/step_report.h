// The report of a step, as plain data. Times and bytes sent are the rank's own. All else is the same on every rank or,
// if replicas train independently (trainer.h), on every rank of the replica.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/nn/block.h"
#include "braid/param/memory_account.h"
#include "braid/param/param_spec.h"

namespace braid::train {

// The auxiliary losses and counts of one rank's blocks in a step (nn/block.h), kept until ranks exchange them.

// By name, of the whole model: zeros where another rank has the block.
struct AuxiliaryNumbers {
  // By microbatch, so that the order of their sum is that of the loss.
  std::map<std::string, std::vector<double>> losses;
  // Added up over microbatches: whole numbers, exact in any order.
  std::map<std::string, std::vector<double>> counts;
};

class StepAuxiliaries {
 public:
  explicit StepAuxiliaries(param::AuxiliarySpec all) : all_(std::move(all)) {}

  // Forgets what there is. `like`: float64, where the model is.
  void begin_step(int num_microbatches, const at::TensorOptions& like);
  // Adds the contributions of a stage's blocks for `micro`. Does not wait for the device. check() fails on a name that
  // no BlockSpec lists.
  void add(int micro, const nn::Auxiliaries& handed_in);
  // Waits for the device.
  AuxiliaryNumbers numbers() const;

 private:
  using Views = std::map<std::string, at::Tensor>;  // of flat_, without gaps

  param::AuxiliarySpec all_;
  at::Tensor flat_;
  Views losses_, counts_;
};

struct StepReport {
  int64_t step = 0;  // counts from 1: this many updates have been made
  double loss = 0;   // mean over the step's tokens, in nats
  double learning_rate = 0;
  double grad_norm = 0;  // before clipping
  // By layer ("embedding", "blocks.0", .., "head"), in model order: their squares add up to that of grad_norm.
  std::vector<std::pair<std::string, double>> layer_grad_norms;
  double seconds = 0;
  double tokens_per_second = 0;
  double utilisation = std::numeric_limits<double>::quiet_NaN();  // of the model's flops; NaN while no peak is known
  double bubble_fraction = 0;  // 1 - busiest rank's compute / span of the pipeline, the largest of any replica
  double loss_scale = 1;       // of float16
  bool skipped = false;        // no update was made: gradients overflowed in float16, or there was a spike
  std::string spike;           // what it was (spike_watch.h); empty: none
  int staleness = 0;  // updates that the latest gradient came late; 0 unless schedule or servers are asynchronous
  double server_wait_seconds = 0;        // of this rank, for a parameter server's answers in this step
  uint64_t sample_hash = 0;              // of the step's samples, as its first and its last stages have read them
  int64_t sync_bytes = 0;                // sent by this rank for replication in this step
  int64_t sync_bytes_across_nodes = 0;   // of these
  std::vector<param::MemoryUse> memory;  // per world rank; peaks since the run began (run_training)
  // Contributions of the model's blocks by name (nn/block.h): means of losses over the step's microbatches, without
  // coefficients, and sums of counts. `loss` includes neither.
  std::map<std::string, double> auxiliary_losses;
  std::map<std::string, std::vector<double>> auxiliary_counts;
};

}  // namespace braid::train
