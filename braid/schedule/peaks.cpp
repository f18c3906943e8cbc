// Counting along each program. It trusts the schedule.
#include "braid/schedule/peaks.h"

#include <algorithm>

namespace braid {
namespace {

// A pair is held from its F to its B or its `last`.
std::vector<int> peaks(const Schedule& schedule, Op last) {
  std::vector<int> result;
  for (const auto& program : schedule.programs) {
    int held = 0;
    int most = 0;
    for (const auto& action : program) {
      if (action.op == Op::Forward) most = std::max(most, ++held);
      if (action.op == Op::FullBackward || action.op == last) --held;
    }
    result.push_back(most);
  }
  return result;
}

}  // namespace

std::vector<int> peak_activations(const Schedule& schedule) { return peaks(schedule, Op::InputGrad); }

std::vector<int> peak_pending_weight_grads(const Schedule& schedule) { return peaks(schedule, Op::WeightGrad); }

}  // namespace braid
