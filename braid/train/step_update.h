// The end of a training step on one rank: all ranks exchange their numbers, then the optimizer makes its step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/optim/loss_scaler.h"
#include "braid/optim/optimizer.h"
#include "braid/spec/train_spec.h"
#include "braid/sync/replication.h"
#include "braid/train/rank_model.h"
#include "braid/train/spike_watch.h"
#include "braid/train/step_report.h"
#include "braid/train/timeline_exchange.h"

namespace braid::train {

// Returns the sum of the losses of all microbatches. `losses` has, by global microbatch, the losses that this rank
// knows and 0 for the others. The all-reduce only adds zeros to each loss, so the losses are summed in the same order
// on every layout. Blocks. Collective.
double total_loss(const std::vector<double>& losses, Communicator& world);

// The contribution of one rank to the exchange. Numbers that several ranks have are contributed by one of them.
struct RankReport {
  std::vector<double> losses;  // as for total_loss()
  BusyRow row;
  uint64_t sample_hash = 0;      // of the samples that this rank reports
  AuxiliaryNumbers auxiliaries;  // of the blocks that this rank reports; losses are placed as in `losses`
};

// The result of the exchange, the same on all ranks of groups().step_report. If replicas have their own gradients,
// grad_norm and layer_squares are those of this rank's replica.
struct StepTotals {
  double loss = 0;
  double grad_norm = 0;                            // norm of the gradients, loss scale included, before clipping
  double squares = 0;                              // sum of the square of grad_norm over the replicas that exchanged
  std::vector<double> layer_squares;               // parts of the square of grad_norm, by layer of ModelLayers
  std::vector<double> all_layer_squares;           // sums of layer_squares over the replicas that exchanged
  std::vector<double> losses;                      // by global microbatch
  std::vector<BusyRow> rows;                       // by rank of groups().step_report
  uint64_t sample_hash = 0;                        // sum over these ranks, modulo 2^64
  std::map<std::string, double> auxiliary_losses;  // as in StepReport
  std::map<std::string, std::vector<double>> auxiliary_counts;
};

// Exchanges losses, auxiliary losses and counts, gradient norms, times and sample hashes between ranks. Blocks until
// all ranks have sent theirs. REQUIRES: the gradients of `model` are final. Collective over groups().step_report.
StepTotals exchanged(RankModel& model, const RankReport& own);

// The time of updates: by the optimizer at the end of the step, by the optimizer during backward as well
// (early_update.h), or by the schedule within the step.
enum class UpdateTime { AtTheEnd, DuringBackward, WithinTheStep };

// Compare: the gradient norm is compared with one that is formed tensor by tensor (norm_check.h).
enum class NormUse { Trust, Compare };

struct StepParts {
  RankModel& model;
  optim::Optimizer& optimizer;
  const sync::GradientSync& gradients;
  sync::ParameterSync& parameters;
  optim::LossScaler* loss_scaler;  // null unless the type is float16
  SpikeWatch& spikes;
  OnSpike on_spike;
  double clip_norm;  // optimizer.clip_norm
  UpdateTime time;
  NormUse norm_use;
  std::vector<int> first_microbatches;  // global number of each data rank's first microbatch (spec/batch_shares.h)
};

// Exchanges `own` with all ranks, makes the optimizer's step with report.learning_rate, updates the loss scale, and
// adds the exchanged numbers to `report`. The caller sets step and learning_rate of `report`.
//
// All ranks agree on whether the step is a spike, and then nothing is updated, unless backward did so already
// (UpdateTime::DuringBackward). The spike's description names the values that are not finite. Depending on `on_spike`,
// this throws RunError or returns the spike in `report`; the caller then continues or rolls back. Before that, throws
// RunError on all ranks if NormUse::Compare finds a difference. Also throws RunError if float16 gradients overflow at
// the smallest scale. REQUIRES: the gradients are final. Collective.
void finish_step(const StepParts& parts, const RankReport& own, StepReport& report);

}  // namespace braid::train
