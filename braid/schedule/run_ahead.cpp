// A walk through what is left of the programs when everything from the first write on is cut off.
#include "braid/schedule/run_ahead.h"

#include <algorithm>
#include <set>

#include "braid/schedule/walk.h"

namespace braid {
namespace {

bool writes_gradients(const Action& action, const Schedule& schedule) {
  switch (action.op) {
    case Op::Forward:
      return action.stage + 1 == schedule.num_stages;
    case Op::FullBackward:
    case Op::InputGrad:
    case Op::WeightGrad:
    case Op::ReduceGrad:
    case Op::Update:
      return true;
    default:
      return false;
  }
}

// Of a fused pair neither action is left.
int first_write(const Program& program, const Schedule& schedule) {
  const auto found = std::find_if(program.begin(), program.end(),
                                  [&](const Action& action) { return writes_gradients(action, schedule); });
  const int index = static_cast<int>(found - program.begin());
  return index < static_cast<int>(program.size()) && pair_ends(program, index) ? index - 1 : index;
}

// The send that a receive takes.
Action source_of(const Action& receive) {
  const bool forward = receive.op == Op::RecvForward;
  return {forward ? Op::SendForward : Op::SendBackward, receive.stage + (forward ? -1 : +1), receive.micro};
}

}  // namespace

RunAhead run_ahead(const Schedule& schedule) {
  Schedule beginning = schedule;
  for (Program& program : beginning.programs) program.resize(first_write(program, schedule));
  RunAhead ahead;
  std::set<Action> sent;
  ahead.until = walk(beginning, SendMode::Buffered, [&](const Visit& visit) {
    const Action& action = beginning.programs[visit.rank][visit.index];
    if (action.op == Op::SendForward || action.op == Op::SendBackward) sent.insert(action);
  });
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    const Program& program = schedule.programs[rank];
    Program& unreceived = ahead.unreceived.emplace_back();
    std::copy_if(program.begin() + ahead.until[rank], program.end(), std::back_inserter(unreceived),
                 [&](const Action& action) {
                   const bool receives = action.op == Op::RecvForward || action.op == Op::RecvBackward;
                   return receives && sent.contains(source_of(action));
                 });
  }
  return ahead;
}

}  // namespace braid
