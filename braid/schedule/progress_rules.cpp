// Finds ranks that never finish, and the reasons. The walk gives the action where a rank stops; positions show the
// action for which it waits.
#include <set>

#include "braid/base/text.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/rules.h"
#include "braid/schedule/walk.h"

namespace braid::schedule {
namespace {

class Progress {
 public:
  Progress(const Schedule& schedule, SendMode mode, const Positions& positions)
      : schedule_(schedule),
        positions_(positions),
        comms_(has_comms(schedule)),
        stops_(walk(schedule, mode, [](const Visit&) {})) {}

  bool finished(int rank) const { return stops_[rank] == static_cast<int>(schedule_.programs[rank].size()); }
  int stop(int rank) const { return stops_[rank]; }

  // Returns a text that names the action for which the stuck action or pair waits, and the reason why it never runs.
  std::string reason(int rank) const {
    const Action missing = awaited(rank);
    if (!exists(missing)) return "nothing can match it";
    const int peer = schedule_.rank_of(missing.stage, missing.micro);
    const std::string waits = cat("it waits for ", braid::text(missing), peer == rank ? "" : cat(" of rank ", peer));
    if (position(missing) == Positions::kMissing) return waits + ", which is not there";
    if (peer == rank) return waits + ", which comes later";
    if (finished(peer)) return waits;
    const Program& program = schedule_.programs[peer];
    if (position(missing) == stop(peer)) return waits + ", which waits as well";
    return cat(waits, ", which stops at ", word_at(program, stop(peer)));
  }

 private:
  bool exists(const Action& action) const { return action.stage >= 0 && action.stage < schedule_.num_stages; }
  int position(const Action& action) const { return positions_.at(action.op, action.stage, action.micro); }
  bool on(int rank, int stage, int micro) const { return schedule_.rank_of(stage, micro) == rank; }

  bool ran(const Action& action) const {
    const int at = position(action);
    return at != Positions::kMissing && at < stops_[schedule_.rank_of(action.stage, action.micro)];
  }

  Action awaited(int rank) const {
    const Program& program = schedule_.programs[rank];
    const int at = stops_[rank];
    const Action first = awaited(program[at], rank);
    const bool fulfilled = !exists(first) || ran(first);
    return pair_begins(program, at) && fulfilled ? awaited(program[at + 1], rank) : first;
  }

  Action awaited(const Action& action, int rank) const {
    const auto at = [&](Op op, int offset) { return Action{op, action.stage + offset, action.micro}; };
    switch (action.op) {
      case Op::Forward:
        return source(action, rank, Op::RecvForward);
      case Op::FullBackward:
      case Op::InputGrad:
        return ran(at(Op::Forward, 0)) ? source(action, rank, Op::RecvBackward) : at(Op::Forward, 0);
      case Op::SendForward:
        return ran(at(Op::Forward, 0)) ? at(Op::RecvForward, +1) : at(Op::Forward, 0);
      case Op::SendBackward: {
        const Action made_by = at(backward_op(action.stage, action.micro), 0);
        return ran(made_by) ? at(Op::RecvBackward, -1) : made_by;
      }
      case Op::RecvForward:
        return at(Op::SendForward, -1);
      case Op::RecvBackward:
        return at(Op::SendBackward, +1);
      default:
        return at(Op::InputGrad, 0);
    }
  }

  // Returns the action that F, B or I gets its tensor from: the receive `through`, or the same pass of the neighbouring
  // stage.
  Action source(const Action& action, int rank, Op through) const {
    const bool forward = action.op == Op::Forward;
    const int stage = action.stage + (forward ? -1 : +1);
    const Action neighbour{action.op, stage, action.micro};
    if (!exists(neighbour)) return neighbour;
    if (comms_ && !on(rank, stage, action.micro)) return {through, action.stage, action.micro};
    return {forward ? Op::Forward : backward_op(stage, action.micro), stage, action.micro};
  }

  // Returns the op that computes the gradient of the stage's input: B, or I if there is no B.
  Op backward_op(int stage, int micro) const {
    return positions_.at(Op::FullBackward, stage, micro) == Positions::kMissing ? Op::InputGrad : Op::FullBackward;
  }

  const Schedule& schedule_;
  const Positions& positions_;
  const bool comms_;
  const std::vector<int> stops_;  // by rank
};

}  // namespace

void check_progress(const Schedule& schedule, SendMode mode, const Positions& positions, std::vector<Fault>& faults) {
  std::set<std::pair<int, int>> known;
  for (const auto& fault : faults) known.insert({fault.rank, fault.position});
  const Progress progress(schedule, mode, positions);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    if (progress.finished(rank)) continue;
    const Program& program = schedule.programs[rank];
    const int stop = progress.stop(rank);
    const bool pair = pair_begins(program, stop);
    if (known.contains({rank, stop}) || (pair && known.contains({rank, stop + 1}))) continue;
    faults.push_back({rank, stop, cat(word_at(program, stop), ": never runs, ", progress.reason(rank))});
  }
}

}  // namespace braid::schedule
