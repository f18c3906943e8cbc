// Chooses a balanced pipeline.partition and balanced mesh.batch_shares from predicted times.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/run_layout.h"
#include "braid/schedule/schedule.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Distributes `num_units` equal units of work over workers. `seconds` has, for each worker, its time for one unit.
// Returns the number of units of each worker, at least 1, such that the last worker finishes as early as possible.
// REQUIRES: there are workers, and at least as many units as workers; check() fails otherwise.
std::vector<int> balanced_units(const std::vector<double>& seconds, int num_units);

// Returns the mesh.batch_shares (the relative number of microbatches of each data rank) that minimize the compute time
// of the slowest data rank. This is the hardware-aware load balancing of Whale (Jia et al. 2022). `seconds` has, for
// each data rank, the time of one microbatch on its slowest pipeline rank. `step.microbatches` is the number of
// microbatches of all data ranks together. Each data rank gets at least one. Returns "equal" if equal shares are best,
// if there are fewer microbatches than data ranks, or if the schedule does not accept such numbers of microbatches.
std::string balanced_shares(const std::vector<double>& seconds, std::string_view schedule, ScheduleRequest step);

// Returns the pipeline.partition (the number of blocks of each stage) that minimizes the compute time of the slowest
// rank, regardless of memory. Stages with the embedding or the head get fewer blocks, and faster devices get more.
// Returns "even" if all layers are of one kind and no partition is faster than the even one. REQUIRES: `spec` has an
// even partition, and problems() finds none in it for Purpose::Plan.
std::string balanced_partition(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                               AccountPtr account = nullptr);

}  // namespace braid::plan
