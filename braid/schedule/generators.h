// The table of pipeline schedules: pure functions of a request. They hold compute actions only: transfers and gradient
// reduction are passes (passes.h). Rules, pictures and sources are with the families in generators/.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/errors.h"
#include "braid/schedule/closed_form.h"
#include "braid/schedule/generators/flush.h"
#include "braid/schedule/generators/stage_placement.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/version_plan.h"

namespace braid {

// Facts about a schedule that are known without generating it.
struct ScheduleTraits {
  std::string_view name;
  std::string_view summary;  // half a line for help texts
  const schedule::ClosedForm* form = nullptr;
  schedule::StagePlacement placement = schedule::StagePlacement::Linear;
  int chunks = 1;                // stages / ranks; 0: ScheduleRequest::chunks, 2 unless given
  bool splits_backward = false;  // it has I and W
  bool fuses = false;            // it has fused pairs of F and B
  bool takes_group = false;      // it reads ScheduleRequest::group
  bool takes_times = false;      // it reads the times and sizes of the request
  // The version of its weights that a stage uses under an asynchronous schedule, which has UPDATE actions. None for all
  // others: their steps end with one update.
  std::optional<schedule::VersionRule> versions = std::nullopt;

  bool asynchronous() const { return versions.has_value(); }
};

// One per schedule, in the order in which they are listed to the user.
std::span<const ScheduleTraits> schedule_traits();

// Returns the traits of the schedule with that name; null if there is none.
const ScheduleTraits* find_schedule(std::string_view name);

// Every name that make_schedule takes.
std::vector<std::string> schedule_names();

// The stages per rank that a request gets.
int chunks_of(const ScheduleTraits& traits, const ScheduleRequest& request);

// Every fault of a request, with the nearest valid value: an unknown name, numbers below 1, stages per rank that are
// not the schedule's, a condition of the schedule. Empty when make_schedule() will make it.
std::vector<Problem> schedule_problems(std::string_view name, const ScheduleRequest& request);

// The schedule of that name. Throws ConfigError with schedule_problems() when there are any.
Schedule make_schedule(std::string_view name, const ScheduleRequest& request);

// The schedule of an action table (csv.h). Throws ConfigError with every fault of the table, or naming every number
// (ranks, microbatches, stages per rank when the request gives them) in which table and request differ.
Schedule schedule_from_table(std::string_view table, std::string name, const ScheduleRequest& request);

}  // namespace braid
