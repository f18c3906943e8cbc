// Times and bytes of possible stages, for the search of a partition (partition.h). A stage consists of the units
// [begin, end).
#pragma once

#include "braid/plan/partition.h"

namespace braid::plan {

class StageCosts {
 public:
  explicit StageCosts(const PartitionRequest& request);

  int num_units() const { return num_units_; }
  int num_stages() const { return num_stages_; }
  int num_ranks() const { return static_cast<int>(speeds_.size()); }
  double speed(int rank) const { return speeds_[rank]; }
  const std::vector<Holder>& holders(int stage) const { return holders_[stage]; }

  double slowest_speed(int stage) const { return slowest_[stage]; }  // speed of the stage's slowest holder

  // Returns the seconds of a stage for one microbatch on a rank of speed 1. Stages of equal units have bitwise equal
  // times.
  double seconds(int begin, int end) const { return seconds_[begin * (num_units_ + 1) + end]; }
  // Returns the seconds of a stage on the slowest rank that holds it.
  double stage_seconds(int stage, int begin, int end) const { return seconds(begin, end) / slowest_[stage]; }
  // Return the seconds and the bytes that the stage adds to its holder's.
  double load(const Holder& holder, int begin, int end) const {
    return holder.share * seconds(begin, end) / speeds_[holder.rank];
  }
  int64_t bytes(const Holder& holder, int begin, int end) const;

  // Returns the partition with these cuts, which are those of Partition::first_unit.
  Partition partition(std::vector<int> first_unit) const;

 private:
  int num_units_, num_stages_;
  std::vector<double> speeds_, slowest_, seconds_;
  std::vector<int64_t> fixed_before_, activation_before_;  // bytes: sums over the units before each unit
  std::vector<std::vector<Holder>> holders_;               // holders of each stage
};

// The score of a partition. Smaller is better, in the lexicographic order of the fields (partition.h).
struct Score {
  int64_t bytes_over = 0;  // bytes by which the fullest rank exceeds the limit
  double rank_seconds = 0, stage_seconds = 0, squares = 0;
  auto operator<=>(const Score&) const = default;
};
Score score(const Partition& partition, int64_t limit_bytes);

}  // namespace braid::plan
