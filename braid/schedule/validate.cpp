// The checks: a census of actions, then rules about pairs of positions, then a walk that shows who never finishes.
#include "braid/schedule/validate.h"

#include <algorithm>
#include <array>
#include <set>

#include "braid/base/text.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/timeline.h"

namespace braid {
namespace {

constexpr int kMissing = -1;

class Validator {
 public:
  Validator(const Schedule& schedule, SendMode mode) : schedule_(schedule), mode_(mode), comms_(has_comms(schedule)) {}

  std::vector<Fault> faults() {
    if (!owners_are_ranks()) return faults_;
    const bool in_range = census();
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      for (int micro = 0; micro < schedule_.num_microbatches; ++micro) {
        check_compute(stage, micro);
        if (comms_) check_transfers(stage, micro);
      }
    }
    check_grad_sync();
    if (in_range) check_progress();
    std::stable_sort(faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) {
      return std::pair(a.rank, static_cast<unsigned>(a.position)) <
             std::pair(b.rank, static_cast<unsigned>(b.position));
    });
    return faults_;
  }

 private:
  using Positions = std::vector<int>;

  void fault(int rank, int position, std::string text) { faults_.push_back({rank, position, std::move(text)}); }

  bool owners_are_ranks() {
    if (static_cast<int>(schedule_.stage_rank.size()) != schedule_.num_stages) {
      fault(-1, -1, cat(schedule_.num_stages, " stages, but ", schedule_.stage_rank.size(), " have an owner"));
    }
    for (size_t stage = 0; stage < schedule_.stage_rank.size(); ++stage) {
      const int rank = schedule_.stage_rank[stage];
      if (rank >= 0 && rank < schedule_.num_ranks()) continue;
      fault(-1, -1, cat("stage ", stage, " is owned by rank ", rank, ", which does not exist"));
    }
    return faults_.empty();
  }

  size_t pair(int stage, int micro) const { return static_cast<size_t>(stage) * schedule_.num_microbatches + micro; }
  int owner(int stage, int micro) const { return schedule_.rank_of(stage, micro); }

  // Where the owner of (stage, micro) runs `op`, or kMissing.
  int position(Op op, int stage, int micro) const {
    const Positions& positions = positions_[static_cast<size_t>(op)];
    return positions.empty() ? kMissing : positions[pair(stage, micro)];
  }

  // Fills positions_. False when an action names a stage or a microbatch that does not exist.
  bool census() {
    bool in_range = true;
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      const Program& program = schedule_.programs[rank];
      for (int i = 0; i < static_cast<int>(program.size()); ++i) in_range &= counted(rank, i, program[i]);
    }
    return in_range;
  }

  bool counted(int rank, int index, const Action& action) {
    const bool whole_stage = of_whole_stage(action.op);
    if (action.stage < 0 || action.stage >= schedule_.num_stages) {
      fault(rank, index, cat(text(action), ": there is no stage ", action.stage));
      return false;
    }
    if (!whole_stage && (action.micro < 0 || action.micro >= schedule_.num_microbatches)) {
      fault(rank, index, cat(text(action), ": there is no microbatch ", action.micro));
      return false;
    }
    const int micro = whole_stage ? 0 : action.micro;
    if (owner(action.stage, micro) != rank) {
      fault(rank, index, cat(text(action), ": its stage is on rank ", owner(action.stage, micro)));
      return true;
    }
    Positions& positions = positions_[static_cast<size_t>(action.op)];
    const size_t pairs = static_cast<size_t>(schedule_.num_stages) * std::max(1, schedule_.num_microbatches);
    if (positions.empty()) positions.assign(pairs, kMissing);
    int& first = positions[pair(action.stage, micro)];
    if (first == kMissing) {
      first = index;
    } else {
      fault(rank, index, cat(text(action), ": appears a second time"));
    }
    return true;
  }

  void need(Op op, int stage, int micro) {
    if (position(op, stage, micro) == kMissing) {
      fault(owner(stage, micro), -1, cat(text(Action{op, stage, micro}), ": missing"));
    }
  }

  void need_order(Op early, Op late, int stage, int micro) {
    const int first = position(early, stage, micro);
    const int second = position(late, stage, micro);
    if (first == kMissing || second == kMissing || first < second) return;
    fault(owner(stage, micro), second,
          cat(text(Action{late, stage, micro}), ": comes before ", text(Action{early, stage, micro})));
  }

  void check_compute(int stage, int micro) {
    need(Op::Forward, stage, micro);
    const int whole = position(Op::FullBackward, stage, micro);
    const int input = position(Op::InputGrad, stage, micro);
    const int weight = position(Op::WeightGrad, stage, micro);
    if (whole == kMissing && input == kMissing && weight == kMissing) {
      need(Op::FullBackward, stage, micro);
    } else if (whole == kMissing) {
      need(Op::InputGrad, stage, micro);
      need(Op::WeightGrad, stage, micro);
    } else if (input != kMissing || weight != kMissing) {
      fault(owner(stage, micro), whole,
            cat(text(Action{Op::FullBackward, stage, micro}), ": is also split in I and W"));
    }
    need_order(Op::Forward, Op::FullBackward, stage, micro);
    need_order(Op::Forward, Op::InputGrad, stage, micro);
    need_order(Op::InputGrad, Op::WeightGrad, stage, micro);
  }

  void check_transfers(int stage, int micro) {
    if (check_edge(stage, -1, micro, {Op::RecvForward, Op::SendBackward})) {
      need_order(Op::RecvForward, Op::Forward, stage, micro);
      need_order(Op::FullBackward, Op::SendBackward, stage, micro);
      need_order(Op::InputGrad, Op::SendBackward, stage, micro);
    }
    if (check_edge(stage, +1, micro, {Op::RecvBackward, Op::SendForward})) {
      need_order(Op::Forward, Op::SendForward, stage, micro);
      need_order(Op::RecvBackward, Op::FullBackward, stage, micro);
      need_order(Op::RecvBackward, Op::InputGrad, stage, micro);
    }
  }

  // The transfers of `stage` with its neighbour: all there when that is on another rank, none when it is not.
  // True when it is.
  bool check_edge(int stage, int offset, int micro, std::array<Op, 2> transfers) {
    const int other = stage + offset;
    const bool exists = other >= 0 && other < schedule_.num_stages;
    const bool crosses = exists && owner(other, micro) != owner(stage, micro);
    for (Op op : transfers) {
      if (crosses) need(op, stage, micro);
      if (crosses || position(op, stage, micro) == kMissing) continue;
      fault(owner(stage, micro), position(op, stage, micro),
            cat(text(Action{op, stage, micro}), ": there is no stage on another rank at its other end"));
    }
    return crosses;
  }

  void check_grad_sync() {
    if (positions_[static_cast<size_t>(Op::ReduceGrad)].empty()) return;
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      const int reduce = position(Op::ReduceGrad, stage, 0);
      if (reduce == kMissing) fault(owner(stage, 0), -1, cat(text(Action{Op::ReduceGrad, stage, -1}), ": missing"));
      for (int micro = 0; micro < schedule_.num_microbatches && reduce != kMissing; ++micro) {
        const Op op = position(Op::WeightGrad, stage, micro) == kMissing ? Op::FullBackward : Op::WeightGrad;
        if (position(op, stage, micro) < reduce) continue;
        const std::string late = text(Action{op, stage, micro});
        fault(owner(stage, 0), reduce, cat(text(Action{Op::ReduceGrad, stage, -1}), ": comes before ", late));
        break;
      }
    }
  }

  void check_progress() {
    std::set<std::pair<int, int>> known;
    for (const auto& fault : faults_) known.insert({fault.rank, fault.position});
    const std::vector<int> stops = walk(schedule_, mode_, [](const Visit&) {});
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      const bool finished = stops[rank] == static_cast<int>(schedule_.programs[rank].size());
      if (finished || known.contains({rank, stops[rank]})) continue;
      const Action& action = schedule_.programs[rank][stops[rank]];
      fault(rank, stops[rank], cat(text(action), ": never runs, ", reason(action, rank, stops)));
    }
  }

  // What a stuck action waits for, and why that does not come.
  std::string reason(const Action& action, int rank, const std::vector<int>& stops) const {
    const Action missing = awaited(action, rank, stops);
    if (missing.stage < 0 || missing.stage >= schedule_.num_stages) return "nothing can match it";
    const int peer = owner(missing.stage, missing.micro);
    const std::string waits = cat("it waits for ", text(missing), peer == rank ? "" : cat(" of rank ", peer));
    if (position(missing.op, missing.stage, missing.micro) == kMissing) return waits + ", which is not there";
    if (peer == rank) return waits + ", which comes later";
    const Program& program = schedule_.programs[peer];
    if (stops[peer] == static_cast<int>(program.size())) return waits;
    const Action& stop = program[stops[peer]];
    return stop == missing ? waits + ", which waits as well" : cat(waits, ", which stops at ", text(stop));
  }

  Action awaited(const Action& action, int rank, const std::vector<int>& stops) const {
    const auto at = [&](Op op, int offset) { return Action{op, action.stage + offset, action.micro}; };
    const auto ran = [&](Op op) {
      const int index = position(op, action.stage, action.micro);
      return index != kMissing && index < stops[rank];
    };
    const auto source = [&](Op through, int offset) {
      const int stage = action.stage + offset;
      const bool transferred =
          comms_ && stage >= 0 && stage < schedule_.num_stages && owner(stage, action.micro) != rank;
      if (transferred) return at(through, 0);
      const bool split = action.op != Op::Forward && stage >= 0 && stage < schedule_.num_stages &&
                         position(Op::FullBackward, stage, action.micro) == kMissing;
      return at(split ? Op::InputGrad : action.op == Op::InputGrad ? Op::FullBackward : action.op, offset);
    };
    switch (action.op) {
      case Op::Forward:
        return source(Op::RecvForward, -1);
      case Op::FullBackward:
      case Op::InputGrad:
        return ran(Op::Forward) ? source(Op::RecvBackward, +1) : at(Op::Forward, 0);
      case Op::SendForward:
        return ran(Op::Forward) ? at(Op::RecvForward, +1) : at(Op::Forward, 0);
      case Op::SendBackward: {
        const Op made_by =
            position(Op::InputGrad, action.stage, action.micro) == kMissing ? Op::FullBackward : Op::InputGrad;
        return ran(made_by) ? at(Op::RecvBackward, -1) : at(made_by, 0);
      }
      case Op::RecvForward:
        return at(Op::SendForward, -1);
      case Op::RecvBackward:
        return at(Op::SendBackward, +1);
      default:
        return at(Op::InputGrad, 0);
    }
  }

  const Schedule& schedule_;
  const SendMode mode_;
  const bool comms_;
  std::array<Positions, kNumOps> positions_;  // by op, then stage and microbatch
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> validate(const Schedule& schedule, SendMode mode) { return Validator(schedule, mode).faults(); }

}  // namespace braid
