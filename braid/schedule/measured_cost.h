// A cost model from measured timelines, to compare a prediction with its measurement.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {

class MeasuredCost {
 public:
  // Adds the spans of one step. Fused pairs are left out, since they do not show the time of each action.
  void add(const Timeline& timeline);

  // Returns the median time of each action on each stage, in the timelines' unit; 0 if the action never ran. On a stage
  // that ran only full backwards, the input-gradient pass has all their time and the weight pass none. The transfer
  // time is that of the shortest receive, since longer ones also waited.
  CostModel cost(int num_stages) const;

 private:
  double median(int stage, Op op) const;  // 0 if it never ran

  std::map<std::pair<int, Op>, std::vector<double>> seconds_;
  std::vector<double> receives_;
};

}  // namespace braid::schedule
