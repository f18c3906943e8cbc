// Detects spikes of loss and gradient norm: keeps a running mean and deviation of the loss and of the norm's logarithm,
// over steps whose update was made.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "braid/train/rank_model.h"

namespace braid::train {

// Finds values in a model that are not finite, for the message of a run that ends.

// "weights of blocks.3.mlp.up.weight (layer blocks.3, rank 1) are not finite": the first such parameter in model order;
// where all are finite the last gradient, since from there backward has handed it on to the layers before. With every
// rank of the world that holds it. Empty where all is finite. Sums over replicas have carried what one of them made to
// all. Collective over groups().step_report.
std::string where_not_finite(RankModel& model);

// Mean and deviation of the latest values: of all up to kWindow, then exponentially weighted, each by 1 / kWindow.
class RunningSpread {
 public:
  static constexpr int64_t kWindow = 100;
  static constexpr double kLeast = 0.01;  // no deviation counts as less than this

  void add(double value);
  // Returns the number of standard deviations that `value` is above the mean; negative below it.
  double deviations(double value) const;

  int64_t count = 0;
  double mean = 0, variance = 0;
};

class SpikeWatch {
 public:
  static constexpr int64_t kFewest = 20;     // steps before which only what is not finite is a spike
  static constexpr int64_t kMostSkips = 10;  // in a row

  // In standard deviations; 0: only what is not finite is a spike.
  explicit SpikeWatch(double threshold) : threshold_(threshold) {}

  // In nats, and of the whole gradient before clipping. What is a spike, "loss 9.1 above its running mean of 3.4 by 7.2
  // standard deviations"; empty: nothing is. A norm's mean is the geometric one.
  std::string spike(double loss, double grad_norm) const;

  // Once per step, one of both: its update was made, or left out for a spike.
  void updated(double loss, double grad_norm);
  void skipped() { ++num_skipped_; }
  // Steps in a row that were skipped until now.
  bool may_skip() const { return num_skipped_ < kMostSkips; }

  // All that it remembers, by names that begin with "spike_": the counters of a checkpoint. Empty where it has nothing
  // that a later step could depend on. What `counters` do not name is as at first.
  std::map<std::string, double> counters() const;
  void restore(const std::map<std::string, double>& counters);

 private:
  template <class Visit>
  static void visit(SpikeWatch& watch, const Visit& visit);

  double threshold_;
  RunningSpread loss_, log_norm_;
  int64_t num_skipped_ = 0;
};

}  // namespace braid::train
