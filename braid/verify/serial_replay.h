// A serial program that trains what a run trains whose ranks use different weights at the same time: replicas that
// update apart, and stages of an asynchronous pipeline. It is written out from the papers, on one rank and with the
// whole model, and shares neither schedules nor replication with the run.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/data/corpus.h"
#include "braid/optim/optimizer.h"
#include "braid/train/batch_source.h"
#include "braid/train/rank_model.h"
#include "braid/train/step_report.h"

namespace braid::verify {

class SerialReplay {
 public:
  // One observer for each replica, or one for a pipeline. All arguments outlive this. `world` has one rank.
  SerialReplay(const RunSpec& run, const data::Corpus& corpus, Communicator& world,
               std::span<nn::ValueObserver* const> observers);

  // Makes a step of all replicas. Returns the loss, the root mean square of the replicas' gradient norms, and the hash
  // of the samples.
  train::StepReport step();
  param::ParamStore& params(size_t replica) { return replicas_[replica].model->params(); }

 private:
  struct Replica {
    nn::ModelMaker maker;
    std::unique_ptr<train::RankModel> model;
    std::unique_ptr<optim::Optimizer> optimizer;
  };
  // A microbatch: its number in the step and in its update, and its weight in the gradient.
  struct Place {
    int of_step = 0, of_update = 0;
    double weight = 1;
  };
  void compute(Replica& replica, const Place& place, train::StepReport& report);
  void step_of_replicas(train::StepReport& report);
  void sum_gradients();
  void average();
  void step_of_stages(train::StepReport& report);
  void use_weights_for(int micro);
  void clip_by_stage();
  int version(int micro, int stage) const;
  double rate() const;

  const RunSpec run_, serial_;
  const train::Groups groups_;
  const train::BatchSource batches_;
  std::deque<Replica> replicas_;
  int64_t step_ = 0;
  at::Tensor anchor_, momentum_;         // of DiLoCo
  std::map<std::string, int> stage_of_;  // by parameter
  int group_ = 1;                        // microbatches of a data rank in an update of a pipeline
  std::vector<at::Tensor> versions_;     // flat weights after the updates of this step
};

}  // namespace braid::verify
