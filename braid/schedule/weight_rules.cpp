// Rules about what follows the weight passes of a stage's copy: the reduction and the optimizer's steps.
#include "braid/base/text.h"
#include "braid/schedule/rules.h"

namespace braid {
namespace {

constexpr int kMissing = Positions::kMissing;

class Checker {
 public:
  Checker(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults)
      : positions_(positions), faults_(faults), copies_(stage_copies(schedule)) {}

  void check() {
    for (const StageCopy& copy : copies_) {
      if (positions_.any(Op::ReduceGrad)) check_reduce(copy);
      if (positions_.any(Op::Update)) check_updates(copy);
    }
  }

 private:
  void fault(const StageCopy& copy, int position, const Action& action, const std::string& what) {
    faults_.push_back({copy.rank, position, cat(text(action), ": ", what)});
  }

  Action weight_action(const StageCopy& copy, int micro) const {
    return {positions_.weight_op(copy.stage, micro), copy.stage, micro};
  }

  // Once, after the weight passes of all its microbatches.
  void check_reduce(const StageCopy& copy) {
    if (copy.first_micro >= copy.end_micro) return;
    const Action reduce{Op::ReduceGrad, copy.stage, -1};
    const int at = positions_.at(Op::ReduceGrad, copy.stage, copy.first_micro);
    if (at == kMissing) return fault(copy, -1, reduce, "missing");
    for (int micro = copy.first_micro; micro < copy.end_micro; ++micro) {
      if (positions_.weight_pass(copy.stage, micro) < at) continue;
      return fault(copy, at, reduce, cat("comes before ", text(weight_action(copy, micro))));
    }
  }

  // Each after the weight passes of all microbatches that it includes; the last one includes them all.
  void check_updates(const StageCopy& copy) {
    if (copy.first_micro >= copy.end_micro) return;
    int latest = copy.first_micro;  // the microbatch whose weight pass is last, so far
    for (int micro = copy.first_micro; micro < copy.end_micro; ++micro) {
      const auto pass = [&](int of) { return positions_.weight_pass(copy.stage, of); };
      if (pass(micro) > pass(latest)) latest = micro;
      const int at = positions_.at(Op::Update, copy.stage, micro);
      if (at == kMissing || at > pass(latest)) continue;
      fault(copy, at, {Op::Update, copy.stage, micro}, cat("comes before ", text(weight_action(copy, latest))));
    }
    const Action last{Op::Update, copy.stage, copy.end_micro - 1};
    if (positions_.at(Op::Update, copy.stage, last.micro) == kMissing) fault(copy, -1, last, "missing");
  }

  const Positions& positions_;
  std::vector<Fault>& faults_;
  const std::vector<StageCopy> copies_;
};

}  // namespace

void check_weight_use(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults) {
  Checker(schedule, positions, faults).check();
}

}  // namespace braid
