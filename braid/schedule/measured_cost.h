// A cost model out of measured timelines, so that a prediction can stand beside its measurement.
// It knows what ran, not why it took that long.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {

class MeasuredCost {
 public:
  // Adds the spans of one step. Fused pairs are left out: they do not tell how long each action takes by itself.
  void add(const Timeline& timeline);

  // Medians by stage and action, in the timelines' unit. On a stage that ran full backwards only, the input-gradient
  // pass has all their time and the weight pass none. A transfer takes what the shortest receive took: the others also
  // waited.
  CostModel cost(int num_stages) const;

 private:
  double median(int stage, Op op) const;  // 0 when it never ran

  std::map<std::pair<int, Op>, std::vector<double>> seconds_;
  std::vector<double> receives_;
};

}  // namespace braid::schedule
