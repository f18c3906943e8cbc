// Eight greedy orders, and the shortest of them.
#include "braid/schedule/generators/searched_zero_bubble.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/base/text.h"
#include "braid/schedule/generators/greedy_order.h"
#include "braid/schedule/generators/program_writer.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {
namespace {

// The first of the shortest.
GreedyOrder shortest(const ScheduleRequest& request, int limit) {
  std::optional<GreedyOrder> best;
  for (const bool waits : {true, false}) {
    for (const bool skips : {true, false}) {
      for (const bool fills : {true, false}) {
        GreedyOrder order(request, limit, {waits, skips, fills});
        if (!best || order.cost() < best->cost()) best.emplace(std::move(order));
      }
    }
  }
  return std::move(*best);
}

// The most pairs in `limit` activations of memory: one before its input-gradient pass, the others after it.
int most_pending(const ScheduleRequest& request, int limit) {
  const int all = request.microbatches;
  if (all * request.pending <= (limit - 1) * request.activation) return all;
  int pairs = 1;
  while (pairs < all && request.activation + pairs * request.pending <= limit * request.activation) ++pairs;
  return pairs;
}

Schedule searched(const char* name, const ScheduleRequest& request, int limit) {
  Schedule schedule = laid_out({name, StagePlacement::Linear, request.ranks, request.microbatches, 1, 3});
  const GreedyOrder order = shortest(request, limit);
  for (int rank = 0; rank < request.ranks; ++rank) {
    ProgramWriter writer(schedule.programs[rank], {{rank}});
    for (const Op op : order.ops(rank)) {
      if (op == Op::Forward) writer.forward(0);
      if (op == Op::InputGrad) writer.input_grad(0);
      if (op == Op::WeightGrad) writer.weight_grad(0);
    }
  }
  schedule.promise.peak_activations.assign(request.ranks, std::min(limit, request.microbatches));
  schedule.promise.peak_pending_weight_grads.assign(request.ranks, most_pending(request, limit));
  return schedule;
}

}  // namespace

std::vector<Problem> searched_zero_bubble_problems(const ScheduleRequest& request) {
  std::vector<Problem> problems;
  const auto need = [&](const char* key, double value, bool holds, const char* rule) {
    if (!holds) problems.push_back({key, exact(value), rule, ""});
  };
  const auto time = [&](const char* key, double value) {
    need(key, value, std::isfinite(value) && value >= 0, "must be a time, a number of at least 0");
  };
  time("forward", request.forward);
  time("input_grad", request.input_grad);
  time("weight_grad", request.weight_grad);
  time("transfer", request.transfer);
  const auto [before, after] = std::pair(request.activation, request.pending);
  need("activation", before, std::isfinite(before) && before > 0, "must be a size, a number above 0");
  need("pending", after, after >= 0 && after <= before, "must be a size from 0 to activation");
  return problems;
}

Schedule zb_1p(const ScheduleRequest& request) { return searched("zb-1p", request, request.ranks); }

Schedule zb_2p(const ScheduleRequest& request) { return searched("zb-2p", request, 2 * request.ranks); }

}  // namespace braid::schedule
