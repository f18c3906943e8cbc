// A step's number determines its candidate.
#include "braid/sync/trials.h"

#include <algorithm>
#include <cstdint>

#include "braid/base/errors.h"

namespace braid::sync {

TimedTrials::TimedTrials(int num_candidates, int steps_each, Pattern pattern)
    : num_candidates_(num_candidates),
      steps_each_(steps_each),
      pattern_(pattern),
      last_step_(pattern == Pattern::Alternating ? 1 + num_candidates * steps_each : num_candidates * (1 + steps_each)),
      seconds_(num_candidates) {
  check(num_candidates > 0 && steps_each > 0, "trials of something");
}

TimedTrials::Turn TimedTrials::turn() const {
  if (pattern_ == Pattern::InBlocks) return {step_ / (1 + steps_each_), step_ % (1 + steps_each_) > 0};
  if (step_ == 0) return {0, false};
  return {(step_ - 1) % num_candidates_, true};
}

int TimedTrials::candidate() const {
  check(!done(), "trials that are over have a result");
  return turn().candidate;
}

void TimedTrials::record(double seconds) {
  check(!done(), "trials that are over have a result");
  if (turn().counts) seconds_[turn().candidate].push_back(seconds);
  ++step_;
}

std::vector<double> TimedTrials::medians() const {
  check(done(), "trials have a result when they are over");
  std::vector<double> middle;
  for (std::vector<double> of_one : seconds_) {
    const auto median = of_one.begin() + static_cast<int64_t>(of_one.size() / 2);
    std::nth_element(of_one.begin(), median, of_one.end());
    middle.push_back(*median);
  }
  return middle;
}

}  // namespace braid::sync
