// Chooses when buckets are launched and how large they are, from measured steps, if the configuration asks for it. All
// ranks of a group choose alike: the slowest rank's medians decide. The choice never changes a result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::sync {

// Trials that find the fastest of several ways of doing a step. Each way is used for some steps, and the medians of
// their times are compared.
class TimedTrials {
 public:
  // Alternating: one step of each candidate in turn, for changes that cost nothing. InBlocks: all steps of one
  // candidate after another, for changes that make the next step slower; that step is dropped. The very first step is
  // dropped in both.
  enum class Pattern { Alternating, InBlocks };

  TimedTrials(int num_candidates, int steps_each, Pattern pattern);

  // Returns the candidate that the current step uses. REQUIRES: not done.
  int candidate() const;
  // Ends the current step, which took `seconds`.
  void record(double seconds);
  bool done() const { return step_ == last_step_; }
  // Returns the median seconds of each candidate. REQUIRES: done.
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

// On: buckets are reduced while backward runs. Off: all buckets are reduced after it.
enum class Overlap { On, Off };

// The settings that a step uses.
struct SyncWays {
  Overlap overlap = Overlap::On;
  double bucket_mb = 25;
  bool operator==(const SyncWays&) const = default;
};

struct TunerOptions {
  enum class Choice { Given, Measured };
  SyncWays first;  // given settings; initial values for measured ones
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
  // Ends a step that took `seconds`. Afterwards ways() has the settings of the next step. If this step was the last of
  // a choice's trials, returns the choice and the reason. The call is collective then: all ranks of the group have done
  // equally many steps.
  std::optional<std::string> step_over(double seconds);

 private:
  enum class Subject { Overlap, BucketSize };
  void begin_trials();
  void try_candidate(int candidate);
  std::string choose();

  Communicator& group_;
  SyncWays ways_;
  std::vector<Subject> open_;  // choices still to be made; the last one is next
  std::optional<TimedTrials> trials_;
};

}  // namespace braid::sync
