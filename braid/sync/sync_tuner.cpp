// Chooses one setting after another. Overlap comes first, and bucket sizes are compared with the chosen overlap.
#include "braid/sync/sync_tuner.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"

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

namespace {

std::string milliseconds(double seconds) { return fixed(1e3 * seconds, 2) + " ms"; }

}  // namespace

SyncTuner::SyncTuner(const TunerOptions& options, Communicator& group) : group_(group), ways_(options.first) {
  using enum TunerOptions::Choice;
  if (group.size() == 1) return;
  if (options.buckets == Measured) open_.push_back(Subject::BucketSize);
  if (options.overlap == Measured) open_.push_back(Subject::Overlap);
  begin_trials();
}

void SyncTuner::begin_trials() {
  trials_.reset();
  if (open_.empty()) return;
  if (open_.back() == Subject::Overlap) {
    trials_.emplace(2, kStepsEach, TimedTrials::Pattern::Alternating);
  } else {
    trials_.emplace(static_cast<int>(std::size(kBucketSizes)), kStepsEach, TimedTrials::Pattern::InBlocks);
  }
  try_candidate(trials_->candidate());
}

void SyncTuner::try_candidate(int candidate) {
  if (open_.back() == Subject::Overlap) {
    ways_.overlap = candidate == 0 ? Overlap::On : Overlap::Off;
  } else {
    ways_.bucket_mb = kBucketSizes[candidate];
  }
}

std::optional<std::string> SyncTuner::step_over(double seconds) {
  if (open_.empty()) return std::nullopt;
  trials_->record(seconds);
  if (trials_->done()) return choose();
  try_candidate(trials_->candidate());
  return std::nullopt;
}

std::string SyncTuner::choose() {
  // The times of the slowest rank decide.
  const auto medians = comm::agree(group_, "times of trials", trials_->medians(), ReduceOp::Max);
  const auto best = static_cast<int>(std::min_element(medians.begin(), medians.end()) - medians.begin());
  try_candidate(best);
  std::string why;
  if (open_.back() == Subject::Overlap) {
    why = cat("sync.overlap = \"", best == 0 ? "on" : "off", "\": ", milliseconds(medians[0]),
              " a step when buckets leave during backward, ", milliseconds(medians[1]), " when they leave after it");
  } else {
    std::vector<std::string> all;
    for (size_t i = 0; i < medians.size(); ++i) all.push_back(cat(milliseconds(medians[i]), " with ", kBucketSizes[i]));
    why = cat("sync.bucket_mb = ", ways_.bucket_mb, ": a step takes ", joined(all));
  }
  open_.pop_back();
  begin_trials();
  return why;
}

}  // namespace braid::sync
