// Finds the fastest of several ways of doing a step: each is used for some steps, and their medians are compared.
#pragma once

#include <vector>

namespace braid::sync {

class TimedTrials {
 public:
  // Alternating: one step of each in turn, where a change costs nothing. InBlocks: the steps of one after another,
  // where the first step after a change is slower; it is dropped. The very first step is dropped in either.
  enum class Pattern { Alternating, InBlocks };

  TimedTrials(int num_candidates, int steps_each, Pattern pattern);

  // Returns the candidate that the current step uses. REQUIRES: not done.
  int candidate() const;
  // The step is over; `seconds` it took.
  void record(double seconds);
  bool done() const { return step_ == last_step_; }
  // By candidate, when done.
  std::vector<double> medians() const;

 private:
  struct Turn {
    int candidate;
    bool counts;
  };
  Turn turn() const;

  const int num_candidates_, steps_each_;
  const Pattern pattern_;
  const int last_step_;
  int step_ = 0;
  std::vector<std::vector<double>> seconds_;  // by candidate
};

}  // namespace braid::sync
