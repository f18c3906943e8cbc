// A schedule with mirrored stages and fused pairs, small enough to be written by hand.
#pragma once

#include "braid/schedule/schedule.h"

namespace braid {

// Two stages on two ranks in both directions: microbatches 0 and 1 enter at rank 0, 2 and 3 at rank 1. Pairs in
// brackets are fused.
//
//   rank 0  0F0 1F2 (0F1 1B2) (1F3 0B0) 1B3 0B1
//   rank 1  0F2 1F0 (0F3 1B0) (1F1 0B2) 1B1 0B3
//
// Lowered by hand: what a pair reads comes before it, what it makes leaves after it.
inline Schedule bidirectional(Op backward) {
  Schedule schedule{"bidirectional", 2, 4, {0, 1}, {{}, {}}};
  schedule.mirror_rank = {1, 0};
  schedule.mirror_from = 2;
  for (const int rank : {0, 1}) {
    const int mine = 2 * rank, other = 2 - mine;  // the first microbatch that enters here, and at the other rank
    const auto pair = [&](Action forward, Action second) {
      forward.fusion = Fusion::WithNext;
      return Program{forward, second};
    };
    const auto add = [&](Program actions) {
      Program& program = schedule.programs[rank];
      for (const Action& action : actions) program.push_back(action);
    };
    add({{Op::Forward, 0, mine}, {Op::SendForward, 0, mine}, {Op::RecvForward, 1, other}, {Op::Forward, 1, other}});
    add(pair({Op::Forward, 0, mine + 1}, {backward, 1, other}));
    add({{Op::SendForward, 0, mine + 1}, {Op::SendBackward, 1, other}});
    add({{Op::RecvForward, 1, other + 1}, {Op::RecvBackward, 0, mine}});
    add(pair({Op::Forward, 1, other + 1}, {backward, 0, mine}));
    add({{backward, 1, other + 1}, {Op::SendBackward, 1, other + 1}});
    add({{Op::RecvBackward, 0, mine + 1}, {backward, 0, mine + 1}});
    if (backward == Op::FullBackward) continue;
    for (const int micro : {other, mine}) add({{Op::WeightGrad, micro == mine ? 0 : 1, micro}});
    for (const int micro : {other + 1, mine + 1}) add({{Op::WeightGrad, micro == mine + 1 ? 0 : 1, micro}});
  }
  return schedule;
}

}  // namespace braid
