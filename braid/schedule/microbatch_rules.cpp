// Rules about the passes of one microbatch on one stage, as comparisons of positions.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "braid/base/text.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/rules.h"

namespace braid::schedule {
namespace {

// Checks the actions of one (stage, microbatch).
class MicrobatchChecker {
 public:
  MicrobatchChecker(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults)
      : schedule_(schedule), positions_(positions), faults_(faults) {}

  void check_compute(int stage, int micro) {
    enter(stage, micro);
    need(Op::Forward);
    switch (schedule_.backward(stage)) {
      case StageBackward::Whole:
        check_whole_backward();
        break;
      case StageBackward::InputOnly:
        need(Op::InputGrad);
        refuse({Op::FullBackward, Op::WeightGrad});
        break;
      case StageBackward::Nothing:
        refuse({Op::FullBackward, Op::InputGrad, Op::WeightGrad});
        break;
    }
    need_order(Op::Forward, Op::FullBackward);
    need_order(Op::Forward, Op::InputGrad);
    need_order(Op::InputGrad, Op::WeightGrad);
    if (!positions_.any(Op::Recompute)) return;
    need_order(Op::Forward, Op::Recompute);
    need_order(Op::Recompute, Op::FullBackward);
    need_order(Op::Recompute, Op::InputGrad);
  }

  void check_transfers(int stage, int micro) {
    enter(stage, micro);
    if (check_edge(-1, Op::RecvForward, Op::SendBackward)) {
      need_order(Op::RecvForward, Op::Forward);
      need_order(Op::FullBackward, Op::SendBackward);
      need_order(Op::InputGrad, Op::SendBackward);
    }
    if (check_edge(+1, Op::SendForward, Op::RecvBackward)) {
      need_order(Op::Forward, Op::SendForward);
      need_order(Op::RecvBackward, Op::FullBackward);
      need_order(Op::RecvBackward, Op::InputGrad);
    }
  }

 private:
  void check_whole_backward() {
    const int whole = at(Op::FullBackward);
    const int input = at(Op::InputGrad);
    const int weight = at(Op::WeightGrad);
    if (whole == Positions::kMissing && input == Positions::kMissing && weight == Positions::kMissing) {
      need(Op::FullBackward);
    } else if (whole == Positions::kMissing) {
      need(Op::InputGrad);
      need(Op::WeightGrad);
    } else if (input != Positions::kMissing || weight != Positions::kMissing) {
      fault(whole, cat(word(Op::FullBackward), ": is also split in I and W"));
    }
  }

  void refuse(std::initializer_list<Op> ops) {
    for (const Op op : ops) {
      if (at(op) != Positions::kMissing) fault(at(op), cat(word(op), ": computes a gradient that nothing needs"));
    }
  }

  void enter(int stage, int micro) {
    stage_ = stage;
    micro_ = micro;
    rank_ = schedule_.rank_of(stage, micro);
  }

  int at(Op op) const { return positions_.at(op, stage_, micro_); }
  std::string word(Op op) const { return braid::text(Action{op, stage_, micro_}); }
  void fault(int position, std::string text) { faults_.push_back({rank_, position, std::move(text)}); }

  void need(Op op) {
    if (at(op) == Positions::kMissing) fault(-1, cat(word(op), ": missing"));
  }

  void need_order(Op early, Op late) {
    const int first = at(early);
    const int second = at(late);
    if (first == Positions::kMissing || second == Positions::kMissing || first < second) return;
    fault(second, cat(word(late), ": comes before ", word(early)));
  }

  // Checks the transfers of an activation and of its gradient with the neighbour at `offset`. They must be present if
  // it is on another rank, and none if it is not. The gradient is left out if the earlier of the stages has no
  // backward. Returns true if the neighbour is on another rank.
  bool check_edge(int offset, Op activation, Op gradient) {
    const int other = stage_ + offset;
    const bool exists = other >= 0 && other < schedule_.num_stages;
    const bool crosses = exists && schedule_.rank_of(other, micro_) != rank_;
    const bool goes_back = crosses && passes_gradient(schedule_, std::max(stage_, other));
    for (const auto& [op, travels] : {std::pair(activation, crosses), std::pair(gradient, goes_back)}) {
      if (travels) need(op);
      if (travels || at(op) == Positions::kMissing) continue;
      fault(at(op), cat(word(op), crosses ? ": nothing needs this gradient"
                                          : ": there is no stage on another rank at its other end"));
    }
    return crosses;
  }

  const Schedule& schedule_;
  const Positions& positions_;
  std::vector<Fault>& faults_;
  int stage_ = 0;
  int micro_ = 0;
  int rank_ = 0;
};

}  // namespace

void check_microbatches(const Schedule& schedule, const Positions& positions, std::vector<Fault>& faults) {
  MicrobatchChecker checker(schedule, positions, faults);
  const bool comms = has_comms(schedule);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    for (int micro = 0; micro < schedule.num_microbatches; ++micro) {
      checker.check_compute(stage, micro);
      if (comms) checker.check_transfers(stage, micro);
    }
  }
}

}  // namespace braid::schedule
