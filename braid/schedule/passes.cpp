// The passes that rewrite one program at a time. They assume that the schedule is valid (validate.h).
#include "braid/schedule/passes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/base/errors.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

bool passes_gradient(const Schedule& schedule, int stage) {
  return stage > 0 && schedule.backward(stage - 1) != StageBackward::Nothing;
}

namespace {

// A send and its receive on the rank of the neighbouring stage.
struct StageTransfer {
  Action send;
  Action receive;
};

// Returns true if the action's stage has a neighbour at `offset` (-1 or +1) that is on another rank.
bool crosses(const Schedule& schedule, const Action& action, int offset) {
  const int other = action.stage + offset;
  if (other < 0 || other >= schedule.num_stages) return false;
  return schedule.rank_of(action.stage, action.micro) != schedule.rank_of(other, action.micro);
}

// Returns the receive that brings the input of an F, B or I from another rank, if there is one.
std::optional<Action> receive_before(const Schedule& schedule, const Action& action) {
  const auto [stage, micro] = std::pair(action.stage, action.micro);
  if (action.op == Op::Forward && crosses(schedule, action, -1)) return Action{Op::RecvForward, stage, micro};
  if (goes_back(action.op) && crosses(schedule, action, +1)) return Action{Op::RecvBackward, stage, micro};
  return std::nullopt;
}

// Returns the transfer of the output of an F, B or I to another rank, if there is one.
std::optional<StageTransfer> transfer_after(const Schedule& schedule, const Action& action) {
  const auto [stage, micro] = std::pair(action.stage, action.micro);
  if (action.op == Op::Forward && crosses(schedule, action, +1)) {
    return StageTransfer{{Op::SendForward, stage, micro}, {Op::RecvForward, stage + 1, micro}};
  }
  if (goes_back(action.op) && crosses(schedule, action, -1) && passes_gradient(schedule, stage)) {
    return StageTransfer{{Op::SendBackward, stage, micro}, {Op::RecvBackward, stage - 1, micro}};
  }
  return std::nullopt;
}

template <class Wanted>
bool contains(const Schedule& schedule, const Wanted& wanted) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const Program& program) {
    return std::any_of(program.begin(), program.end(), [&](const Action& action) { return wanted(action.op); });
  });
}

// Returns the schedule with every program replaced by rewrite(program).
template <class Rewrite>
Schedule rewritten(const Schedule& schedule, const Rewrite& rewrite) {
  Schedule result = schedule;
  for (auto& program : result.programs) program = rewrite(program);
  return result;
}

// Returns the index after the unit that begins at `index`. A unit is a fused pair or one action.
size_t unit_end(const Program& program, size_t index) { return index + (pair_begins(program, index) ? 2 : 1); }

// Returns the place of RECOMPUTE for the backward at `index`.
size_t recompute_place(const Program& program, size_t index) {
  const size_t unit = pair_ends(program, index) ? index - 1 : index;
  const Action receive{Op::RecvBackward, program[index].stage, program[index].micro};
  for (size_t i = unit; i > 0 && (program[i - 1].op == Op::RecvForward || program[i - 1].op == Op::RecvBackward); --i) {
    if (program[i - 1] == receive) return i - 1;
  }
  return unit;
}

// Returns true if the action computes, sends or reduces a gradient that nothing needs.
bool is_unneeded(const Schedule& schedule, const Action& action) {
  const StageBackward backward = schedule.backward(action.stage);
  switch (action.op) {
    case Op::WeightGrad:
    case Op::ReduceGrad:
      return backward != StageBackward::Whole;
    case Op::FullBackward:
    case Op::InputGrad:
    case Op::RecvBackward:
      return backward == StageBackward::Nothing;
    case Op::SendBackward:
      return !passes_gradient(schedule, action.stage);
    default:
      return false;
  }
}

}  // namespace

Schedule with_backwards(const Schedule& schedule, const std::vector<StageBackward>& backwards) {
  const auto whole = [](StageBackward backward) { return backward == StageBackward::Whole; };
  if (std::ranges::all_of(backwards, whole)) return schedule;
  check(std::ssize(backwards) == schedule.num_stages, "every stage has a backward, whole or not");
  check(std::ranges::is_partitioned(backwards, [](StageBackward one) { return one == StageBackward::Nothing; }),
        "stages without a backward come first");
  Schedule result = schedule;
  result.backwards = backwards;
  return rewritten(result, [&](const Program& program) {
    Program shorter;
    for (size_t i = 0; i < program.size(); ++i) {
      Action action = program[i];
      const bool left_out = is_unneeded(result, action);
      if (left_out && pair_ends(program, i)) shorter.back().fusion = Fusion::None;
      if (left_out) continue;
      const bool input_only = result.backward(action.stage) == StageBackward::InputOnly;
      if (input_only && action.op == Op::FullBackward) action.op = Op::InputGrad;
      shorter.push_back(action);
    }
    return shorter;
  });
}

bool has_comms(const Schedule& schedule) {
  return contains(schedule, [](Op op) { return communicates(op); });
}

Schedule with_comms(const Schedule& schedule) {
  if (has_comms(schedule)) return schedule;
  return rewritten(schedule, [&](const Program& program) {
    Program longer;
    longer.reserve(3 * program.size());
    for (size_t begin = 0, end; begin < program.size(); begin = end) {
      end = unit_end(program, begin);
      for (size_t i = begin; i < end; ++i) {
        if (const auto receive = receive_before(schedule, program[i])) longer.push_back(*receive);
      }
      longer.insert(longer.end(), program.begin() + begin, program.begin() + end);
      for (size_t i = begin; i < end; ++i) {
        if (const auto transfer = transfer_after(schedule, program[i])) longer.push_back(transfer->send);
      }
    }
    return longer;
  });
}

Schedule with_grad_sync(const Schedule& schedule) {
  if (contains(schedule, [](Op op) { return op == Op::ReduceGrad || op == Op::Update; })) return schedule;
  return rewritten(schedule, [&](const Program& program) {
    std::vector<int> last(schedule.num_stages, -1);
    for (size_t i = 0; i < program.size(); ++i) {
      const bool adds = program[i].op == Op::FullBackward || program[i].op == Op::WeightGrad;
      if (adds) last[program[i].stage] = static_cast<int>(i);
    }
    Program longer;
    longer.reserve(program.size() + 2);
    for (size_t i = 0; i < program.size(); ++i) {
      longer.push_back(program[i]);
      if (last[program[i].stage] == static_cast<int>(i)) longer.push_back({Op::ReduceGrad, program[i].stage, -1});
    }
    return longer;
  });
}

Schedule with_recompute(const Schedule& schedule, const std::vector<int>& stages) {
  return rewritten(schedule, [&](const Program& program) {
    std::vector<std::pair<size_t, Action>> insertions;
    for (size_t i = 0; i < program.size(); ++i) {
      const bool listed = std::find(stages.begin(), stages.end(), program[i].stage) != stages.end();
      if (!listed || !goes_back(program[i].op)) continue;
      insertions.emplace_back(recompute_place(program, i), Action{Op::Recompute, program[i].stage, program[i].micro});
    }
    Program longer;
    longer.reserve(program.size() + insertions.size());
    auto next = insertions.begin();
    for (size_t i = 0; i < program.size(); ++i) {
      for (; next != insertions.end() && next->first == i; ++next) longer.push_back(next->second);
      longer.push_back(program[i]);
    }
    return longer;
  });
}

Schedule forward_only(const Schedule& schedule, int num_microbatches) {
  Schedule forwards = schedule;
  forwards.num_microbatches = num_microbatches;
  forwards.promise = {};
  for (Program& program : forwards.programs) program.clear();
  const int second = schedule.mirrored() ? schedule.mirror_from : num_microbatches;
  const int num_rounds = schedule.num_stages + num_microbatches;
  for (int round = 0; round < num_rounds; ++round) {
    for (int micro = 0; micro < num_microbatches; ++micro) {
      const int stage = round - (micro < second ? micro : micro - second);
      if (stage < 0 || stage >= schedule.num_stages) continue;
      forwards.programs[schedule.rank_of(stage, micro)].push_back({Op::Forward, stage, micro});
    }
  }
  return with_comms(forwards);
}

}  // namespace braid::schedule
