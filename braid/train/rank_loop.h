// The loop over the steps of a run, on one rank: what happens between steps, and who hears of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/communicator.h"
#include "braid/comm/rank_activity.h"
#include "braid/train/evaluated_text.h"
#include "braid/train/run.h"
#include "braid/train/run_checkpoints.h"
#include "braid/train/trainer.h"

namespace braid::train {

// The inputs of a run's ranks: one object where they are threads, a copy in each process.
struct SharedByRanks {
  const RunStart& start;
  const data::Corpus& corpus;
  const std::vector<std::string>& choices;  // made before ranks start
  EvaluatedText& evaluated;                 // asked by rank 0 only
  RunObserver& observer;                    // hears rank 0 only
  ckpt::CheckpointReading& begun_with;  // the checkpoint that the run goes on from, or has its weights from; held until
                                        // the run's own first one is there
  const RunControls& controls;
};

// A rank's request for what follows the step; the strongest request of all ranks is granted.
enum class RunRequest { GoOn, Save, Stop };

// The loop of one rank with its trainer. Collective over the world.
class RankLoop {
 public:
  // All of it outlives this.
  RankLoop(const SharedByRanks& shared, Trainer& trainer, Communicator& world);

  // Runs steps until all are done or a stop is requested, and saves the last. The caller fills in fields that ranks do
  // not have. Also returns at a spike() that the run goes back for: then the trainer is unusable and the result empty.
  RunEnd run();
  // Returns a description of the spike; empty if there was none.
  const std::string& spike() const { return spike_; }
  // The newest that this loop has saved; empty: none.
  std::string saved() const;

 private:
  RunEnd ended(bool interrupted);
  RunEnd ended_by(const StepReport& spike);
  template <class Call>
  void tell(const Call& call) const {
    if (world_.rank() != 0) return;
    if (comm::RankActivity* activity = world_.activity()) activity->begin_telling("telling of the run");
    call();
    doing("between steps");
  }
  void doing(const std::string& what) const;
  void hear(StepReport report);
  void raise_peak(double reached_per_rank);
  RunRequest request();
  RunRequest agreed_request();
  RunRequest agreed(RunRequest mine);
  bool stops_after_work_between_steps(RunRequest request);
  void tell_of_graphs();
  void tell_of_choices();
  void measure_peak();
  void foresee();
  bool worth_measuring_peak() const;
  bool worth_foreseeing() const;
  bool is_evaluated(int64_t step) const;
  bool evaluation_is_known();
  void evaluate();
  void compare_replicas();
  void check_replicas();
  void save();

  const SharedByRanks& shared_;
  const RunStart& start_;
  const TrainSpec& train_;
  Trainer& trainer_;
  Communicator& world_;
  RunCheckpoints checkpoints_;
  Evaluation evaluation_{-1};    // the last; none yet
  bool wishes_to_save_ = false;  // and has said so
  bool told_of_graphs_ = false;
  bool has_foreseen_ = false;
  bool owes_check_ = false;  // of replicas, which were apart when it was due
  std::string spike_;
  std::vector<double> own_losses_;  // where replicas run apart: of this one's steps since the last evaluation
  PeakFlops peak_{train_.peak_flops, PeakSource::Given, 0};
};

}  // namespace braid::train
