// The exchange between ranks at the end of a step: losses, auxiliary losses and counts, the parts of the gradients'
// norm, times, and hashes of the samples.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/train/rank_model.h"
#include "braid/train/step_report.h"
#include "braid/train/timeline_exchange.h"

namespace braid::train {

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

}  // namespace braid::train
