// The report of a step, as plain data. Times and sent bytes are those of the reporting rank. All else is the same on
// every rank; if replicas train independently (trainer.h), it is the same on every rank of a replica.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/layout/param_spec.h"
#include "braid/nn/block.h"
#include "braid/param/memory_account.h"

namespace braid::train {

// The auxiliary losses and counts of a step (nn/block.h) by name, for all blocks of the model. They are zero for blocks
// of other ranks.
struct AuxiliaryNumbers {
  // By microbatch, so they are summed in the same order as the loss.
  std::map<std::string, std::vector<double>> losses;
  // Sums over microbatches. They are whole numbers, so their sums are exact in any order.
  std::map<std::string, std::vector<double>> counts;
};

// Collects the auxiliary losses and counts of one rank's blocks in a step, until ranks exchange them.
class StepAuxiliaries {
 public:
  explicit StepAuxiliaries(layout::AuxiliarySpec all) : all_(std::move(all)) {}

  // Sets all losses and counts to zero. `like` is float64, on the model's device.
  void begin_step(int num_microbatches, const at::TensorOptions& like);
  // Adds the contributions of a stage's blocks for `micro`. Does not wait for the device. check() fails on a name that
  // no BlockSpec lists.
  void add(int micro, const nn::Auxiliaries& handed_in);
  // Returns the losses and counts of this step. Waits for the device.
  AuxiliaryNumbers numbers() const;

 private:
  using Views = std::map<std::string, at::Tensor>;  // views of flat_, without gaps

  layout::AuxiliarySpec all_;
  at::Tensor flat_;
  Views losses_, counts_;
};

struct StepReport {
  int64_t step = 0;  // counted from 1; steps with a skipped update count too
  double loss = 0;   // mean over the step's tokens, in nats
  double learning_rate = 0;
  double grad_norm = 0;  // before clipping
  // Norms by layer ("embedding", "blocks.0", .., "head"), in model order. Their squares sum to that of grad_norm.
  std::vector<std::pair<std::string, double>> layer_grad_norms;
  double seconds = 0;
  double tokens_per_second = 0;
  double utilisation = std::numeric_limits<double>::quiet_NaN();  // model FLOPs utilisation; NaN while no peak is known
  double bubble_fraction = 0;  // 1 - busiest rank's compute / span of the pipeline; the largest of all pipelines
  double loss_scale = 1;       // other than 1 in float16 only
  bool skipped = false;        // no update was made: gradients overflowed in float16, or there was a spike
  std::string spike;           // description of the spike (spike_watch.h); empty: none
  int staleness = 0;  // largest staleness of a gradient, in updates; 0 unless schedule or servers are asynchronous
  double server_wait_seconds = 0;        // time that this rank waited for parameter servers in this step
  uint64_t sample_hash = 0;              // hash of the step's samples, as the first and last stages read them
  int64_t sync_bytes = 0;                // bytes that this rank sent for replication in this step
  int64_t disk_bytes = 0;                // bytes that this rank read from its disks and wrote to them in this step
  int64_t bytes_across_hosts = 0;        // bytes that this rank sent to other hosts since the last step
  std::vector<param::MemoryUse> memory;  // by rank of the world, or of the replica; peaks since the run began
  // Contributions of the model's blocks by name (nn/block.h): means of losses over the step's microbatches, without
  // coefficients, and sums of counts. `loss` includes neither.
  std::map<std::string, double> auxiliary_losses;
  std::map<std::string, std::vector<double>> auxiliary_counts;
};

}  // namespace braid::train
