// What the ranks tell each other at the end of a step, in two halves: the losses, the parts of the gradients' norm, the
// times, what was read and their wishes. It draws no conclusion from any of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "braid/optim/grad_norm.h"
#include "braid/train/stage_model.h"
#include "braid/train/timeline_exchange.h"

namespace braid {

// What a rank would have happen after the step; the strongest wish of all ranks does.
enum class Wish { GoOn, Save, Stop };

// By global microbatch, the losses this rank knows and 0 for the others; a sum over the world only ever adds zeros, so
// all ranks add the losses in the same order whatever the layout. Blocks; `losses` becomes that sum. Collective.
double total_loss(const at::Tensor& losses, Communicator& world);

class StepExchange {
 public:
  struct Own {
    at::Tensor losses;  // as for total_loss()
    BusyRow row;
    Wish wish = Wish::GoOn;
    uint64_t sample_hash = 0;  // of what this rank alone speaks for
  };
  // The same on all ranks of the world, but for the norms where replicas have gradients of their own.
  struct Numbers {
    double loss = 0;
    double grad_norm = 0;           // of the gradients as they are, of this rank's replica
    double squares = 0;             // of grad_norm, added over all replicas
    std::vector<double> own_norms;  // by rank of the model group: own_norm() there, the same bits
    std::vector<BusyRow> rows;      // by world rank
    Wish wish = Wish::GoOn;         // the strongest of all ranks
    uint64_t sample_hash = 0;       // added over all ranks, modulo 2^64
  };

  // The gradients of `model` are final. Returns before the others have arrived; they may change afterwards. Collective.
  StepExchange(StageModel& model, const Own& own);

  // The norm of what this rank speaks for.
  double own_norm() const { return norm_.own(); }
  // Blocks until all ranks have started theirs. Once.
  Numbers finish();

 private:
  GradNormExchange norm_;
  at::Tensor losses_;  // and behind them the sums that are no losses
  Work losses_work_;
  RowsInFlight rows_;
  int num_model_ranks_;
};

}  // namespace braid
