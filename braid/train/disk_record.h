// The record of what a rank's disks read and write in a step.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/disk/disk.h"
#include "braid/schedule/timeline.h"
#include "braid/train/rank_model.h"

namespace braid::train {

class DiskRecord {
 public:
  // `model` outlives this.
  explicit DiskRecord(RankModel& model) : model_(model) {}

  // Begins the record of a step, in place of that of the last one.
  void begin();
  // Ends the record. Returns the bytes that the disks have counted since begin().
  int64_t end();
  // Returns the transfers that ended between begin() and end(), in the order of their begins, in seconds of
  // now_seconds().
  std::vector<schedule::DiskTransfer> transfers() const;

 private:
  void set_recording(disk::Recording recording);

  RankModel& model_;
  int64_t bytes_before_ = 0;
};

}  // namespace braid::train
