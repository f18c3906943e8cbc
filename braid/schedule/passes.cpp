// The passes. They trust the schedule; validate.h does not.
#include "braid/schedule/passes.h"

#include <algorithm>

#include "braid/schedule/timeline.h"

namespace braid {
namespace {

// True when `stage` has a neighbour at `offset` (-1 or +1) that lives on another rank.
bool crosses(const Schedule& schedule, const Action& action, int offset) {
  const int other = action.stage + offset;
  if (other < 0 || other >= schedule.num_stages) return false;
  return schedule.rank_of(action.stage, action.micro) != schedule.rank_of(other, action.micro);
}

void push_with_transfers(const Schedule& schedule, const Action& action, Program& program) {
  const bool forward = action.op == Op::Forward;
  const bool backward = action.op == Op::FullBackward || action.op == Op::InputGrad;
  const auto push = [&](Op op) { program.push_back({op, action.stage, action.micro}); };
  if (forward && crosses(schedule, action, -1)) push(Op::RecvForward);
  if (backward && crosses(schedule, action, +1)) push(Op::RecvBackward);
  program.push_back(action);
  if (forward && crosses(schedule, action, +1)) push(Op::SendForward);
  if (backward && crosses(schedule, action, -1)) push(Op::SendBackward);
}

bool contains(const Schedule& schedule, bool (*wanted)(Op)) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const Program& program) {
    return std::any_of(program.begin(), program.end(), [&](const Action& action) { return wanted(action.op); });
  });
}

}  // namespace

bool has_comms(const Schedule& schedule) { return contains(schedule, communicates); }

Schedule with_comms(const Schedule& schedule) {
  if (has_comms(schedule)) return schedule;
  Schedule result = schedule;
  for (auto& program : result.programs) {
    Program longer;
    longer.reserve(3 * program.size());
    for (const auto& action : program) push_with_transfers(schedule, action, longer);
    program = std::move(longer);
  }
  return result;
}

Schedule with_grad_sync(const Schedule& schedule) {
  if (contains(schedule, [](Op op) { return op == Op::ReduceGrad; })) return schedule;
  Schedule result = schedule;
  for (auto& program : result.programs) {
    std::vector<int> last(schedule.num_stages, -1);
    for (size_t i = 0; i < program.size(); ++i) {
      const bool adds = program[i].op == Op::FullBackward || program[i].op == Op::WeightGrad;
      if (adds) last[program[i].stage] = static_cast<int>(i);
    }
    Program longer;
    for (size_t i = 0; i < program.size(); ++i) {
      longer.push_back(program[i]);
      if (last[program[i].stage] == static_cast<int>(i)) longer.push_back({Op::ReduceGrad, program[i].stage, -1});
    }
    program = std::move(longer);
  }
  return result;
}

Schedule split_backward(const Schedule& schedule) {
  Schedule result = schedule;
  for (auto& program : result.programs) {
    Program longer;
    for (const auto& action : program) {
      if (action.op != Op::FullBackward) {
        longer.push_back(action);
        continue;
      }
      longer.push_back({Op::InputGrad, action.stage, action.micro});
      longer.push_back({Op::WeightGrad, action.stage, action.micro});
    }
    program = std::move(longer);
  }
  return result;
}

}  // namespace braid
