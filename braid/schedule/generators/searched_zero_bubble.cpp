// ZB-1p and ZB-2p: the shortest of eight greedy orders.
#include "braid/schedule/generators/searched_zero_bubble.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/schedule/action.h"
#include "braid/schedule/generators/program_writer.h"
#include "braid/schedule/generators/stage_placement.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {
namespace {

// Three choices of a greedy order. The best combination depends on the times, so all eight are tried.
struct GreedyRule {
  bool waits_for_first;  // the warm-up runs only forwards that end before the first gradient arrives
  bool skips_forwards;   // a round leaves out a forward if the next rank has enough forwards to run
  bool fills_gaps;       // a weight pass fills a gap that is shorter than the pass, whatever the delay
};

class GreedyOrder {
 public:
  // No rank ever holds more memory than `limit` activations take, its pending weight gradients included. Times and
  // sizes are those of the request.
  GreedyOrder(const ScheduleRequest& request, int limit, GreedyRule greed);

  double cost() const;  // the longest time from a rank's first start to its last end
  // Returns the ops of a rank in order. Each kind of op takes its microbatches in ascending order.
  const std::vector<Op>& ops(int rank) const { return ranks_[rank].ops; }

 private:
  struct Rank {
    std::vector<Op> ops;
    std::vector<double> forward_ends, input_grad_ends;  // by microbatch
    int forwards = 0, input_grads = 0, weight_grads = 0;
    double first_start = 0, clock = 0, idle = 0;
    int pending() const { return input_grads - weight_grads; }
  };

  void warm_up();
  std::vector<int> more_forwards() const;
  void run_round();
  std::vector<bool> wanted_forwards() const;
  bool can_wait(int rank) const;
  void put(int rank, Op op);
  void fill_until(int rank, double arrival);
  double next_input(int rank) const;
  double next_gradient(int rank) const;
  double held(const Rank& rank, int more_forwards, int fewer_pending) const;

  const ScheduleRequest times_;
  const double limit_;
  const GreedyRule greed_;
  std::vector<Rank> ranks_;
  double most_idle_ = 0;  // longest idle time of a rank so far
};

GreedyOrder::GreedyOrder(const ScheduleRequest& request, int limit, GreedyRule greed)
    : times_(request), limit_(limit * request.activation), greed_(greed), ranks_(request.ranks) {
  for (auto& rank : ranks_) rank.ops.reserve(3 * static_cast<size_t>(request.microbatches));
  warm_up();
  for (int micro = 1; micro < request.microbatches; ++micro) run_round();
  for (int rank = 0; rank < request.ranks; ++rank) {
    while (ranks_[rank].pending() > 0) put(rank, Op::WeightGrad);
  }
}

double GreedyOrder::cost() const {
  double longest = 0;
  for (const auto& rank : ranks_) longest = std::max(longest, rank.clock - rank.first_start);
  return longest;
}

// Returns the memory that a rank holds after `more_forwards` more forwards and after `fewer_pending` of its pending
// weight passes.
double GreedyOrder::held(const Rank& rank, int more_forwards, int fewer_pending) const {
  return (rank.forwards - rank.input_grads + more_forwards) * times_.activation +
         (rank.pending() - fewer_pending) * times_.pending;
}

double GreedyOrder::next_input(int rank) const {
  return ranks_[rank - 1].forward_ends[ranks_[rank].forwards] + times_.transfer;
}

double GreedyOrder::next_gradient(int rank) const {
  return ranks_[rank + 1].input_grad_ends[ranks_[rank].input_grads] + times_.transfer;
}

void GreedyOrder::put(int index, Op op) {
  Rank& rank = ranks_[index];
  double start = rank.clock;
  if (op == Op::Forward && index > 0) start = std::max(start, next_input(index));
  if (op == Op::InputGrad && index + 1 < times_.ranks) start = std::max(start, next_gradient(index));
  if (rank.forwards == 0) {
    rank.first_start = start;
  } else {
    rank.idle += start - rank.clock;
    most_idle_ = std::max(most_idle_, rank.idle);
  }
  rank.ops.push_back(op);
  if (op == Op::Forward) {
    ++rank.forwards;
    rank.forward_ends.push_back(rank.clock = start + times_.forward);
  } else if (op == Op::InputGrad) {
    ++rank.input_grads;
    rank.input_grad_ends.push_back(rank.clock = start + times_.input_grad);
  } else {
    ++rank.weight_grads;
    rank.clock = start + times_.weight_grad;
  }
}

// Runs the weight passes that end before `arrival`, then perhaps one that does not.
void GreedyOrder::fill_until(int index, double arrival) {
  Rank& rank = ranks_[index];
  while (rank.pending() > 0 && rank.clock + times_.weight_grad <= arrival) put(index, Op::WeightGrad);
  if (rank.pending() == 0 || rank.clock >= arrival) return;
  if (greed_.fills_gaps || arrival - rank.clock > most_idle_ - rank.idle) put(index, Op::WeightGrad);
}

// Returns the number of forwards that each rank runs before its first gradient, beyond the first.
std::vector<int> GreedyOrder::more_forwards() const {
  std::vector<int> more(times_.ranks, 0);
  // Time at which the gradient of microbatch 0 leaves the next rank.
  double gradient = ranks_.back().clock + times_.input_grad;
  for (int index = times_.ranks - 2; index >= 0; --index) {
    const double arrival = gradient + times_.transfer;
    double clock = ranks_[index].clock;
    while (1 + more[index] < times_.microbatches && held(ranks_[index], more[index] + 1, 0) <= limit_ &&
           (greed_.waits_for_first ? clock + times_.forward <= arrival : clock < arrival)) {
      clock += times_.forward;
      ++more[index];
    }
    gradient = std::max(clock, arrival) + times_.input_grad;
  }
  for (int index = 1; index < times_.ranks; ++index) {
    const bool possible = 1 + more[index] < times_.microbatches;
    if (possible && more[index] >= more[index - 1])
      more[index] = std::min(more[index], std::max(0, more[index - 1] - 1));
  }
  return more;
}

void GreedyOrder::warm_up() {
  for (int index = 0; index < times_.ranks; ++index) put(index, Op::Forward);
  const std::vector<int> more = more_forwards();
  for (int index = 0; index < times_.ranks; ++index) {
    for (int i = 0; i < more[index]; ++i) put(index, Op::Forward);
  }
  for (int index = times_.ranks - 1; index >= 0; --index) put(index, Op::InputGrad);
}

// Returns true if the next rank has enough forwards, and this rank loses nothing if its own forward waits for a round.
bool GreedyOrder::can_wait(int index) const {
  const Rank& rank = ranks_[index];
  const Rank& behind = ranks_[index + 1];
  if (rank.forwards < behind.forwards + 2) return false;
  const double next = behind.clock + times_.forward + times_.input_grad + times_.transfer;
  if (rank.clock >= next) return true;
  int weights = 0;  // weight passes that free the memory for one more forward
  while (weights < rank.pending() && held(rank, 1, weights) > limit_) ++weights;
  if (rank.clock + times_.forward + weights * times_.weight_grad <= next) return false;
  return next - rank.clock <= most_idle_ - rank.idle;
}

std::vector<bool> GreedyOrder::wanted_forwards() const {
  std::vector<bool> wanted(times_.ranks);
  for (int index = times_.ranks - 1; index >= 0; --index) {
    const bool last = index + 1 == times_.ranks;
    wanted[index] = ranks_[index].forwards < times_.microbatches;
    if (greed_.skips_forwards && wanted[index] && !last && can_wait(index)) wanted[index] = false;
    if (!last && !wanted[index + 1]) wanted[index] = false;
  }
  return wanted;
}

void GreedyOrder::run_round() {
  const std::vector<bool> wanted = wanted_forwards();
  for (int index = 0; index < times_.ranks; ++index) {
    if (!wanted[index]) continue;
    while (held(ranks_[index], 1, 0) > limit_) {
      check(ranks_[index].pending() > 0, "the limit of memory leaves room for a forward");
      put(index, Op::WeightGrad);
    }
    if (index > 0) fill_until(index, next_input(index));
    put(index, Op::Forward);
  }
  for (int index = times_.ranks - 1; index >= 0; --index) {
    if (index + 1 < times_.ranks) fill_until(index, next_gradient(index));
    if (index == 0 && ranks_[0].forwards == times_.microbatches) {
      while (ranks_[0].pending() > 0) put(0, Op::WeightGrad);
    }
    put(index, Op::InputGrad);
  }
}

// Returns the shortest order, the first one if several are equally short.
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

// Returns the largest number of pairs that fit into the memory of `limit` activations. One pair is before its
// input-gradient pass, the others are after it.
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
