// The rules about the actions that follow the weight passes of a stage's copy: gradient reduction and optimizer steps.
#include "braid/base/text.h"
#include "braid/schedule/rules.h"

namespace braid::schedule {
namespace {

class WeightChecker {
 public:
  WeightChecker(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults)
      : schedule_(schedule), positions_(positions), faults_(faults), copies_(stage_copies(schedule)) {
    if (!positions_.any(Op::Update)) return;
    updates_.resize(schedule.num_microbatches, false);
    for (const StageCopy& copy : copies_) {
      for (int micro = copy.first_micro; micro < copy.end_micro; ++micro) {
        if (positions_.at(Op::Update, copy.stage, micro) != Positions::kMissing) updates_[micro] = true;
      }
      if (copy.first_micro < copy.end_micro) updates_[copy.end_micro - 1] = true;
    }
  }

  void check() {
    for (const StageCopy& copy : copies_) {
      const bool has_gradients = schedule_.backward(copy.stage) == StageBackward::Whole;
      if (positions_.any(Op::ReduceGrad) && has_gradients) check_reduce(copy);
      if (positions_.any(Op::Update)) check_updates(copy);
    }
  }

 private:
  void fault(const StageCopy& copy, int position, const Action& action, const std::string& what) {
    faults_.push_back({copy.rank, position, cat(braid::text(action), ": ", what)});
  }

  Action weight_action(const StageCopy& copy, int micro) const {
    return {positions_.weight_op(copy.stage, micro), copy.stage, micro};
  }

  // Checks that the copy has a REDUCE_GRAD, after the weight passes of all its microbatches.
  void check_reduce(const StageCopy& copy) {
    if (copy.first_micro >= copy.end_micro) return;
    const Action reduce{Op::ReduceGrad, copy.stage, -1};
    const int at = positions_.at(Op::ReduceGrad, copy.stage, copy.first_micro);
    if (at == Positions::kMissing) return fault(copy, -1, reduce, "missing");
    for (int micro = copy.first_micro; micro < copy.end_micro; ++micro) {
      if (positions_.weight_pass(copy.stage, micro) < at) continue;
      return fault(copy, at, reduce, cat("comes before ", braid::text(weight_action(copy, micro))));
    }
  }

  // Checks that all copies update after the same microbatches, which include the last one of each copy. Every update
  // must come after the weight passes that it includes.
  void check_updates(const StageCopy& copy) {
    int latest = copy.first_micro;  // the microbatch whose weight pass is last, so far
    for (int micro = copy.first_micro; micro < copy.end_micro; ++micro) {
      const auto pass = [&](int of) { return positions_.weight_pass(copy.stage, of); };
      if (pass(micro) > pass(latest)) latest = micro;
      if (!updates_[micro]) continue;
      const Action update{Op::Update, copy.stage, micro};
      const int at = positions_.at(Op::Update, copy.stage, micro);
      if (at == Positions::kMissing) {
        fault(copy, -1, update, "missing");
      } else if (at < pass(latest)) {
        fault(copy, at, update, cat("comes before ", braid::text(weight_action(copy, latest))));
      }
    }
  }

  const Schedule& schedule_;
  const Positions& positions_;
  std::vector<Fault>& faults_;
  const std::vector<StageCopy> copies_;
  std::vector<bool> updates_;  // by microbatch: whether an update ends with it
};

}  // namespace

void check_weight_use(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults) {
  WeightChecker(schedule, positions, faults).check();
}

}  // namespace braid::schedule
