// When buckets leave and how large they are, chosen from measured steps where the configuration asks for it. All ranks
// of a group choose alike: the slowest rank's medians decide. None of it changes a result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::sync {

// Finds the fastest of several ways of doing a step: each is used for some steps, and their medians are compared.
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

// On: buckets are reduced while backward runs. Off: all of them after it.
enum class Overlap { On, Off };

// The settings that a step uses.
struct SyncWays {
  Overlap overlap = Overlap::On;
  double bucket_mb = 25;
  bool operator==(const SyncWays&) const = default;
};

struct TunerOptions {
  enum class Choice { Given, Measured };
  SyncWays first;  // what is given; for what is measured, where to begin
  Choice overlap = Choice::Given;
  Choice buckets = Choice::Given;
};

class SyncTuner {
 public:
  static constexpr double kBucketSizes[] = {1, 4, 25, 100};  // MB
  static constexpr int kStepsEach = 3;

  // `group` outlives this. In a group of one nothing is measured.
  SyncTuner(const TunerOptions& options, Communicator& group);

  const SyncWays& ways() const { return ways_; }
  bool done() const { return open_.empty(); }
  // A step is over and took `seconds`. Afterwards ways() is what the next step uses. Returns what was chosen, and why,
  // when this was the last step that it took. Collective then: all ranks of the group have done as many steps.
  std::optional<std::string> step_over(double seconds);

 private:
  enum class Subject { Overlap, BucketSize };
  void begin_trials();
  void try_candidate(int candidate);
  std::string choose();

  Communicator& group_;
  SyncWays ways_;
  std::vector<Subject> open_;  // what is still to be chosen, the last one first
  std::optional<TimedTrials> trials_;
};

}  // namespace braid::sync
