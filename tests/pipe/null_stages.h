// Stages that do nothing but complain: an executor whose tensors are one number each, and which throws Complaint at the
// first thing that a sound schedule does not ask for. What it holds one rank to is what validate() forbids, told by
// other means, as it happens:
//
//  * every action is on the rank of its stage and microbatch, once (UNSHARD and RESHARD: in turn);
//  * F has its input, B and I have F and the gradient of its output, each the right number; W has I;
//  * a microbatch has B or I and W, not both; RECOMPUTE stands between F and B or I;
//  * outputs and gradients are asked for once, after they are made, and only where there is a stage to have them;
//    buffers once, and only where the tensor comes from another rank;
//  * REDUCE_GRAD and UPDATE come after the weight passes that they include, UPDATE of the same microbatches everywhere;
//  * if anybody unshards, passes run on unsharded stages only;
//  * no count exceeds the schedule's promise;
//  * finish(): nothing is missing.
//
// The rest is the runtime's to notice: tensors read before they were received, marks of fusion on what is no pair,
// ranks that never come to their end.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/text.h"
#include "braid/pipe/stage_executor.h"
#include "braid/schedule/schedule.h"

namespace braid {

struct Complaint : std::logic_error {
  using std::logic_error::logic_error;
};

class NullStages final : public pipe::StageExecutor {
 public:
  // The stages of that rank. `schedule` outlives this.
  NullStages(const Schedule& schedule, int rank) : schedule_(schedule), rank_(rank) {
    for (const Program& program : schedule.programs) {
      for (const Action& action : program) {
        present_.insert(action.op);
        if (action.op == Op::Update) updates_.insert(action.micro);
      }
    }
  }

  std::vector<Action> ran;  // in order, without marks of fusion

  void forward(int stage, int micro) override {
    Pass& pass = enter({Op::Forward, stage, micro});
    if (stage > 0) expect(pass.input, activation(stage - 1, micro), "its input");
    versions_[stage].reads[micro] = versions_[stage].newest;
    hold(++activations_, schedule_.promise.peak_activations);
    hold(++weight_grads_, schedule_.promise.peak_pending_weight_grads);
    hold_versions(stage);
  }
  void full_backward(int stage, int micro) override {
    backward({Op::FullBackward, stage, micro});
    --weight_grads_;
  }
  void input_grad(int stage, int micro) override { backward({Op::InputGrad, stage, micro}); }
  void weight_grad(int stage, int micro) override {
    Pass& pass = enter({Op::WeightGrad, stage, micro});
    require(pass.has(Op::InputGrad), "has no I before it");
    --weight_grads_;
  }
  void recompute(int stage, int micro) override {
    Pass& pass = enter({Op::Recompute, stage, micro});
    require(pass.has(Op::Forward), "has no F before it");
    require(!pass.has(Op::FullBackward) && !pass.has(Op::InputGrad), "comes after its backward");
  }
  void reduce_grad(int stage) override { require_weight_passes(stage, enter_stage({Op::ReduceGrad, stage, -1})); }
  void update(int stage, int micro) override {
    enter({Op::Update, stage, micro});
    std::vector<int> included = micros(stage);
    std::erase_if(included, [&](int other) { return other > micro; });
    require_weight_passes(stage, included);
    ++versions_[stage].newest;
    hold_versions(stage);
  }
  void unshard(int stage) override {
    enter_stage({Op::Unshard, stage, -1});
    require(unsharded_.insert(stage).second, "is unsharded already");
  }
  void reshard(int stage) override {
    enter_stage({Op::Reshard, stage, -1});
    require(unsharded_.erase(stage) == 1, "is not unsharded");
  }

  Tensors outputs(int stage, int micro) override {
    Pass& pass = asked("the output", stage, micro);
    require(stage + 1 < schedule_.num_stages && pass.has(Op::Forward), "is not there");
    require(!std::exchange(pass.output_taken, true), "is gone");
    return {number(activation(stage, micro))};
  }
  Tensors input_gradients(int stage, int micro) override {
    Pass& pass = asked("the gradient of the input", stage, micro);
    require(stage > 0 && (pass.has(Op::FullBackward) || pass.has(Op::InputGrad)), "is not there");
    require(!std::exchange(pass.gradient_taken, true), "is gone");
    return {number(gradient(stage, micro))};
  }
  Tensors input_buffers(int stage, int micro) override {
    Pass& pass = asked("a buffer for the input", stage, micro);
    require_elsewhere(stage - 1, micro);
    return {once(pass.input, number(0))};
  }
  Tensors output_gradient_buffers(int stage, int micro) override {
    Pass& pass = asked("a buffer for the output's gradient", stage, micro);
    require_elsewhere(stage + 1, micro);
    return {once(pass.output_gradient, number(0))};
  }
  void give_inputs(int stage, int micro, Tensors tensors) override {
    once(asked("a place for the input", stage, micro).input, tensors.at(0));
  }
  void give_output_gradients(int stage, int micro, Tensors tensors) override {
    once(asked("a place for the output's gradient", stage, micro).output_gradient, tensors.at(0));
  }

  // The step is over.
  void finish() {
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      const std::vector<int> mine = micros(stage);
      if (mine.empty()) continue;
      at_ = cat("at the end, stage ", stage);
      for (const int micro : mine) require(passes_[{stage, micro}].has(Op::Forward), "lacks a forward");
      require_weight_passes(stage, mine);
      require(!present_.contains(Op::ReduceGrad) || whole_stage_.contains({Op::ReduceGrad, stage}), "is not reduced");
      for (const int micro : mine) {
        const bool due = !updates_.empty() && (updates_.contains(micro) || micro == mine.back());
        require(!due || passes_[{stage, micro}].has(Op::Update), "lacks an update");
      }
    }
  }

 private:
  // The state of one stage and microbatch.
  struct Pass {
    std::set<Op> ran;
    at::Tensor input, output_gradient;
    bool output_taken = false, gradient_taken = false;
    bool has(Op op) const { return ran.contains(op); }
  };
  struct Versions {
    int newest = 0;
    std::map<int, int> reads;  // by microbatch in flight
  };

  void require(bool holds, const char* what) const {
    if (!holds) throw Complaint(cat("rank ", rank_, ": ", at_, " ", what));
  }

  std::vector<int> micros(int stage) const {
    std::vector<int> mine;
    for (int micro = 0; micro < schedule_.num_microbatches; ++micro) {
      if (schedule_.rank_of(stage, micro) == rank_) mine.push_back(micro);
    }
    return mine;
  }

  Pass& asked(const std::string& what, int stage, int micro) {
    at_ = cat(what, " of stage ", stage, ", microbatch ", micro);
    require(schedule_.rank_of(stage, micro) == rank_, "is on another rank");
    return passes_[{stage, micro}];
  }

  Pass& enter(const Action& action) {
    Pass& pass = asked(text(action), action.stage, action.micro);
    const bool needs_weights = action.op != Op::Update;
    const bool shards = present_.contains(Op::Unshard) || present_.contains(Op::Reshard);
    require(!needs_weights || !shards || unsharded_.contains(action.stage), "needs weights that are not there");
    require(pass.ran.insert(action.op).second, "comes again");
    ran.push_back(action);
    return pass;
  }

  // The microbatches of the stage on this rank.
  std::vector<int> enter_stage(const Action& action) {
    at_ = text(action);
    const std::vector<int> mine = micros(action.stage);
    require(!mine.empty(), "is on another rank");
    const bool again = !whole_stage_.insert({action.op, action.stage}).second;
    require(!again || action.op != Op::ReduceGrad, "comes again");
    ran.push_back(action);
    return mine;
  }

  void backward(const Action& action) {
    const auto [op, stage, micro, fusion] = action;
    Pass& pass = enter(action);
    require(pass.has(Op::Forward), "has no F before it");
    require(!pass.has(op == Op::InputGrad ? Op::FullBackward : Op::InputGrad), "is a second backward");
    if (stage + 1 < schedule_.num_stages) expect(pass.output_gradient, gradient(stage + 1, micro), "its gradient");
    versions_[stage].reads.erase(micro);
    --activations_;
  }

  void require_weight_passes(int stage, const std::vector<int>& included) {
    for (const int micro : included) {
      const Pass& pass = passes_[{stage, micro}];
      require(pass.has(Op::FullBackward) || pass.has(Op::WeightGrad), "lacks a weight pass");
    }
  }

  // The tensor comes by a transfer: there is a neighbour, and it is not here.
  void require_elsewhere(int neighbour, int micro) const {
    require(neighbour >= 0 && neighbour < schedule_.num_stages, "comes from nowhere");
    require(schedule_.rank_of(neighbour, micro) != rank_, "comes from this rank");
  }

  const at::Tensor& once(at::Tensor& place, const at::Tensor& tensor) const {
    require(!place.defined(), "is asked for again");
    return place = tensor;
  }

  // Limits are by rank; none at all when empty.
  void hold(int count, const std::vector<int>& limits) const {
    require(limits.empty() || count <= limits[rank_], "makes more than the schedule promises");
  }
  void hold_versions(int stage) {
    if (schedule_.promise == ScheduleProperty{}) return;
    std::set<int> kept = {versions_[stage].newest};
    for (const auto& [micro, version] : versions_[stage].reads) kept.insert(version);
    require(static_cast<int>(kept.size()) <= schedule_.promise.weight_versions, "makes too many versions of weights");
  }

  // Activations: a number of its own for every tensor.
  static int64_t activation(int stage, int micro) { return (int64_t{stage} << 32) + 2 * micro; }
  static int64_t gradient(int stage, int micro) { return (int64_t{stage} << 32) + 2 * micro + 1; }
  static at::Tensor number(int64_t value) {
    at::Tensor tensor = at::empty({1}, at::kLong);
    *tensor.mutable_data_ptr<int64_t>() = value;
    return tensor;
  }
  void expect(const at::Tensor& tensor, int64_t value, const char* what) const {
    require(tensor.defined(), cat("has not got ", what).c_str());
    require(*tensor.const_data_ptr<int64_t>() == value, cat("has got the wrong number for ", what).c_str());
  }

  const Schedule& schedule_;
  const int rank_;
  std::set<Op> present_;   // ops of any rank
  std::set<int> updates_;  // microbatches that any rank's updates end with
  std::string at_;         // what is being asked for, for messages
  std::map<std::pair<int, int>, Pass> passes_;
  std::set<std::pair<Op, int>> whole_stage_;  // ops of a whole stage that ran
  std::set<int> unsharded_;
  std::map<int, Versions> versions_;  // by stage
  int activations_ = 0;
  int weight_grads_ = 0;
};

}  // namespace braid
