// Warm-up, rounds of at most one F and exactly one I per rank, then what is left of W.
#include "braid/schedule/generators/greedy_order.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::schedule {

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

// Returns the memory of a rank after so many more forwards and with so many pending weight passes finished.
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

// Weight passes that end before `arrival`; then perhaps one that does not.
void GreedyOrder::fill_until(int index, double arrival) {
  Rank& rank = ranks_[index];
  while (rank.pending() > 0 && rank.clock + times_.weight_grad <= arrival) put(index, Op::WeightGrad);
  if (rank.pending() == 0 || rank.clock >= arrival) return;
  if (greed_.fills_gaps || arrival - rank.clock > most_idle_ - rank.idle) put(index, Op::WeightGrad);
}

// Returns the number of forwards that each rank runs before its first gradient, beyond the first.
std::vector<int> GreedyOrder::more_forwards() const {
  std::vector<int> more(times_.ranks, 0);
  double gradient = ranks_.back().clock + times_.input_grad;  // of microbatch 0, when it leaves the rank behind
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

// True when the rank behind has forwards enough, and this one nothing to lose by waiting a round with its own.
bool GreedyOrder::can_wait(int index) const {
  const Rank& rank = ranks_[index];
  const Rank& behind = ranks_[index + 1];
  if (rank.forwards < behind.forwards + 2) return false;
  const double next = behind.clock + times_.forward + times_.input_grad + times_.transfer;
  if (rank.clock >= next) return true;
  int weights = 0;  // that make room for one more forward
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

}  // namespace braid::schedule
