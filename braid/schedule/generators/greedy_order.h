// One greedy order of F, I and W on a line of ranks, for given times and a limit of memory.
// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 3.1.
#pragma once

#include <vector>

#include "braid/schedule/action.h"
#include "braid/schedule/schedule_request.h"

namespace braid::schedule {

// Three ways to be greedy; which is best depends on the times, so all are tried.
struct GreedyRule {
  bool waits_for_first;  // warm up with those forwards only that end before the first gradient comes
  bool skips_forwards;   // leave a forward out of a round when the next rank has enough of them to do
  bool fills_gaps;       // put a weight pass in a gap that is shorter, whatever the delay
};

class GreedyOrder {
 public:
  // No rank ever holds more than `limit` activations take, its pending weight gradients included (times and sizes are
  // those of the request).
  GreedyOrder(const ScheduleRequest& request, int limit, GreedyRule greed);

  double cost() const;  // the longest time from a rank's first start to its last end
  // The ops of a rank in order; each kind takes its microbatches ascending.
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
  double most_idle_ = 0;  // of any rank so far
};

}  // namespace braid::schedule
