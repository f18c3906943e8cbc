// The end of a training step on one rank: the optimizer's step and what it takes from the whole model. It knows neither
// schedules nor when the next step begins.
//
// Source of the guess: Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR 2024), section 4 and algorithm 1, where a
// stage updates at once and takes the update back when the norm of all stages asks for it. The paper undoes AdamW's
// arithmetic; here bits are kept, so the result is that of waiting, bit for bit.
#pragma once

#include <memory>
#include <optional>

#include "braid/optim/adamw.h"
#include "braid/optim/kept_state.h"
#include "braid/optim/loss_scaler.h"
#include "braid/sync/replication.h"
#include "braid/train/step_exchange.h"
#include "braid/train/step_report.h"

namespace braid {

// Validated: the update waits for the numbers of all ranks. Guessed: it is made on the guess that they are finite and
// ask for no clipping, unless this rank's own part tells that they are not; then it waits too. Elsewhere: the schedule
// updates within the step.
enum class UpdateTime { Validated, Guessed, Elsewhere };

class StepUpdate {
 public:
  enum class Verdict { GoOn, StartOver };
  struct Parts {
    StageModel& model;
    AdamW& optimizer;
    Replication& replication;
    LossScaler* loss_scaler;  // null but in float16
  };

  // `parts` outlive this. `clip_norm` as in the configuration.
  StepUpdate(UpdateTime time, double clip_norm, const Parts& parts);

  // The gradients are final, and stay as they are until validate(). Starts the exchange of `own` and updates with the
  // learning rate `lr`, or waits first (see UpdateTime). Collective.
  void begin(const StepExchange::Own& own, double lr);

  // Waits for the numbers of all ranks. Afterwards masters, moments and counters are what they would be had the update
  // waited: a wrong guess has been taken back, and redone where there is an update to make. StartOver: some rank had
  // guessed wrong, so forwards since begin() may have used wrong weights. All ranks reach the same verdict.
  Verdict validate();

  // After validate(). Adds to `report`, which names the step, what all ranks told, and moves the loss scale on. Throws
  // RunError on all ranks when the loss or the norm is not finite, or float16 gradients overflow at the smallest scale;
  // then nothing was updated.
  void conclude(StepReport& report);

  // Of the last step that was concluded.
  Wish wish() const { return wish_; }

 private:
  enum class Outcome { Update, Skip, Diverge };
  double scale() const { return parts_.loss_scaler ? parts_.loss_scaler->scale() : 1; }
  bool guesses(double own_norm) const;
  void judge();
  double norm_of_replicas() const;
  void make_the_update();
  void update(double grad_scale);

  const UpdateTime time_;
  const double clip_norm_;
  const Parts parts_;
  std::unique_ptr<KeptState> kept_;       // Guessed only
  std::optional<StepExchange> exchange_;  // until judged
  StepExchange::Numbers numbers_;
  Wish wish_ = Wish::GoOn;
  double lr_ = 0;
  Outcome outcome_ = Outcome::Update;
  double clip_ = 1;
  bool guessed_ = false;   // this rank has updated before it knew
  int num_rollbacks_ = 0;  // ranks of a replica that did and were wrong
};

}  // namespace braid
