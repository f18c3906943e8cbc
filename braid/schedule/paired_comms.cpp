// Transfers in the order of a common clock: the side that sends says where the receive stands.
#include "braid/base/errors.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/transfers.h"
#include "braid/schedule/unit_time.h"

namespace braid {
namespace {

class Pairing {
 public:
  Pairing(const Schedule& schedule, Pace pace) : schedule_(schedule), result_(schedule) {
    const size_t pairs = static_cast<size_t>(schedule.num_stages) * schedule.num_microbatches;
    input_here_.assign(pairs, false);
    gradient_here_.assign(pairs, false);
    next_.assign(schedule.num_ranks(), 0);
    idle_.assign(schedule.num_ranks(), 0);
    if (pace == Pace::UnitTime) slots_ = unit_time(schedule);
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      result_.programs[rank].clear();
      result_.programs[rank].reserve(3 * schedule.programs[rank].size());
      set_idle(rank);
    }
  }

  Schedule run() {
    for (bool open = true; open;) {
      open = false;
      bool moved = false;
      for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
        if (next_[rank] == schedule_.programs[rank].size()) continue;
        open = true;
        moved |= take_turn(rank);
      }
      check(moved || !open, "with_paired_comms needs a schedule that can run");
    }
    return std::move(result_);
  }

 private:
  size_t pair(int stage, int micro) const { return static_cast<size_t>(stage) * schedule_.num_microbatches + micro; }

  // One round of a rank: an idle slot passes, or its next unit is placed when its tensors are here.
  bool take_turn(int rank) {
    if (idle_[rank] > 0) return --idle_[rank] >= 0;
    const Program& program = schedule_.programs[rank];
    const size_t begin = next_[rank];
    const size_t end = begin + (pair_begins(program, begin) ? 2 : 1);
    for (size_t i = begin; i < end; ++i) {
      if (!ready(program[i])) return false;
    }
    Program& placed = result_.programs[rank];
    placed.insert(placed.end(), program.begin() + begin, program.begin() + end);
    for (size_t i = begin; i < end; ++i) finish(program[i], placed);
    next_[rank] = end;
    set_idle(rank);
    return true;
  }

  bool ready(const Action& action) const {
    if (action.op == Op::Forward) return action.stage == 0 || input_here_[pair(action.stage, action.micro)];
    if (action.op != Op::FullBackward && action.op != Op::InputGrad) return true;
    return action.stage == schedule_.num_stages - 1 || gradient_here_[pair(action.stage, action.micro)];
  }

  // What the action makes arrives at the stage that needs it, with a transfer where that is elsewhere.
  void finish(const Action& action, Program& placed) {
    const auto [stage, micro] = std::pair(action.stage, action.micro);
    if (action.op == Op::Forward && stage + 1 < schedule_.num_stages) input_here_[pair(stage + 1, micro)] = true;
    const bool back = action.op == Op::FullBackward || action.op == Op::InputGrad;
    if (back && stage > 0) gradient_here_[pair(stage - 1, micro)] = true;
    if (const auto transfer = transfer_after(schedule_, action)) {
      placed.push_back(transfer->send);
      result_.programs[schedule_.rank_of(transfer->receive.stage, micro)].push_back(transfer->receive);
    }
  }

  // The idle slots before the rank's next unit.
  void set_idle(int rank) {
    if (slots_.ranks.empty() || next_[rank] == schedule_.programs[rank].size()) return;
    const auto& spans = slots_.ranks[rank];
    check(next_[rank] < spans.size(), "with_paired_comms needs a schedule that can run");
    const double free = next_[rank] == 0 ? 0 : spans[next_[rank] - 1].end;
    idle_[rank] = static_cast<int>(spans[next_[rank]].begin - free);
  }

  const Schedule& schedule_;
  Schedule result_;
  Timeline slots_;                                // empty: no idle slots
  std::vector<bool> input_here_, gradient_here_;  // by stage and microbatch
  std::vector<size_t> next_;                      // by rank, in its program
  std::vector<int> idle_;                         // by rank, slots to pass before the next unit
};

}  // namespace

Schedule with_paired_comms(const Schedule& schedule, Pace pace) {
  return has_comms(schedule) ? schedule : Pairing(schedule, pace).run();
}

}  // namespace braid
