// The end of a training step on one rank: what all ranks tell each other, and the optimizer's step that follows from
// it.
#pragma once

#include <vector>

#include "braid/optim/loss_scaler.h"
#include "braid/optim/optimizer.h"
#include "braid/spec/train_spec.h"
#include "braid/sync/replication.h"
#include "braid/train/spike_watch.h"
#include "braid/train/step_exchange.h"
#include "braid/train/step_report.h"

namespace braid::train {

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
