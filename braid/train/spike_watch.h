// Detects spikes of loss and gradient norm. Keeps a running mean and deviation of the loss and of the norm's logarithm,
// over the steps whose update was made.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "braid/train/rank_model.h"

namespace braid::train {

// Returns text such as "weights of blocks.3.mlp.up.weight (layer blocks.3, rank 1) are not finite" for an error
// message. Names the first parameter in model order whose weights are not finite. If all weights are finite, names the
// last one whose gradient is not, since backward spreads such values to earlier layers. Lists the world ranks that hold
// these values; all-reduces spread them to all replicas. Empty if all values are finite. Collective over
// groups().step_report.
std::string where_not_finite(RankModel& model);

// Mean and deviation of a series. The first kWindow values have equal weights. From then on the mean is exponential,
// and each new value has weight 1 / kWindow.
class RunningSpread {
 public:
  static constexpr int64_t kWindow = 100;
  static constexpr double kLeast = 0.01;  // lower bound of the standard deviation

  void add(double value);
  // Returns the number of standard deviations that `value` is above the mean; negative below it.
  double deviations(double value) const;

  int64_t count = 0;
  double mean = 0, variance = 0;
};

class SpikeWatch {
 public:
  static constexpr int64_t kFewest = 20;     // in the first kFewest updates, only values that are not finite are spikes
  static constexpr int64_t kMostSkips = 10;  // steps in a row

  // `threshold` is in standard deviations; 0: only values that are not finite are spikes.
  explicit SpikeWatch(double threshold) : threshold_(threshold) {}

  // Returns a description if a step is a spike, such as "loss 9.1 above its running mean of 3.4 by 7.2 standard
  // deviations"; else "". `loss` is in nats. `grad_norm` is that of the whole gradient before clipping; its mean is the
  // geometric one.
  std::string spike(double loss, double grad_norm) const;

  // One of these is called after each step: updated() if the update was made, skipped() if it was skipped for a spike.
  void updated(double loss, double grad_norm);
  void skipped() { ++num_skipped_; }
  // Returns true if fewer than kMostSkips steps in a row were skipped until now.
  bool may_skip() const { return num_skipped_ < kMostSkips; }

  // Return and restore the state, as counters of a checkpoint whose names begin with "spike_". Values that are 0 are
  // left out. Values that `counters` does not name become 0.
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
