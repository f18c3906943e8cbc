// The end of a training step on one rank: what all ranks tell each other, and the optimizer's step that follows from
// it.
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

// The exchange between ranks at the end of a step: losses, auxiliary losses and counts, the parts of the gradients'
// norm, times, and hashes of the samples.

// By global microbatch, the losses this rank knows and 0 for the others; a sum over the world only ever adds zeros, so
// all ranks add the losses in the same order whatever the layout. Blocks. Collective.
double total_loss(const std::vector<double>& losses, Communicator& world);

// The contribution of one rank.
struct RankReport {
  std::vector<double> losses;  // as for total_loss()
  BusyRow row;
  uint64_t sample_hash = 0;      // of what this rank alone speaks for
  AuxiliaryNumbers auxiliaries;  // of what this rank alone speaks for; its losses are placed as `losses` are
};

// The same on all ranks of the world, but for the norm where replicas have gradients of their own.
struct StepTotals {
  double loss = 0;
  double grad_norm = 0;                            // of the gradients as they are, of this rank's replica
  double squares = 0;                              // of grad_norm, added over all replicas
  std::vector<double> layer_squares;               // parts of grad_norm's square, by ModelLayers
  std::vector<double> all_layer_squares;           // the same, added over all replicas
  std::vector<double> losses;                      // by global microbatch
  std::vector<BusyRow> rows;                       // by world rank
  uint64_t sample_hash = 0;                        // added over all ranks, modulo 2^64
  std::map<std::string, double> auxiliary_losses;  // as in StepReport
  std::map<std::string, std::vector<double>> auxiliary_counts;
};

// The gradients of `model` are final. Blocks until all ranks have told theirs. Collective.
StepTotals exchanged(RankModel& model, const RankReport& own);

// The time of updates: by the optimizer at the end of the step, or by the schedule within it.
enum class UpdateTime { AtTheEnd, WithinTheStep };

struct StepParts {
  RankModel& model;
  optim::Optimizer& optimizer;
  const sync::GradientSync& gradients;
  sync::ParameterSync& parameters;
  optim::LossScaler* loss_scaler;  // null but in float16
  SpikeWatch& spikes;
  OnSpike on_spike;
  double clip_norm;  // as in the configuration
  UpdateTime time;
  std::vector<int> first_microbatches;  // of data ranks (spec/batch_shares.h)
};

// The gradients are final. Tells all ranks `own`, updates with report.learning_rate, moves the loss scale on, and adds
// to `report`, which names the step, what all ranks told. A spike is one for all ranks, with nothing updated, and says
// where what is not finite was: it throws RunError, or is in the report, which leaves it to the caller to go on or
// back. Throws RunError too when float16 gradients overflow at the smallest scale. Collective.
void finish_step(const StepParts& parts, const RankReport& own, StepReport& report);

}  // namespace braid::train
