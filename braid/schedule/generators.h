// The table of pipeline schedules, each a pure function of a request. Schedules hold compute actions only; the passes
// in passes.h add transfers and gradient reduction. Rules, pictures and sources are in the headers of generators/.
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
  std::string_view summary;  // short description for help texts
  const schedule::ClosedForm* form = nullptr;
  schedule::StagePlacement placement = schedule::StagePlacement::Linear;
  int chunks = 1;                // stages per rank; 0: ScheduleRequest::chunks, or 2 if that is 0
  bool splits_backward = false;  // has I and W
  bool fuses = false;            // has fused pairs of F and B
  bool takes_group = false;      // reads ScheduleRequest::group
  bool takes_times = false;      // reads the times and sizes of the request
  // The version of its weights that a stage uses under an asynchronous schedule, which has UPDATE actions. Empty for
  // other schedules, whose steps end with one update.
  std::optional<schedule::VersionRule> versions = std::nullopt;

  bool asynchronous() const { return versions.has_value(); }
};

// Returns the traits of each schedule, in the order in which they are listed to the user.
std::span<const ScheduleTraits> schedule_traits();

// Returns the traits of the schedule with that name; null if there is none.
const ScheduleTraits* find_schedule(std::string_view name);

// Returns every name that make_schedule() accepts.
std::vector<std::string> schedule_names();

// Returns the stages per rank of the schedule that `request` makes.
int chunks_of(const ScheduleTraits& traits, const ScheduleRequest& request);

// Returns every problem of a request, with the nearest valid value: an unknown name, numbers below 1, wrong stages per
// rank, and unmet conditions of the schedule. The result is empty if make_schedule() accepts the request.
std::vector<Problem> schedule_problems(std::string_view name, const ScheduleRequest& request);

// Returns the schedule with that name. Throws ConfigError with schedule_problems() if there are any.
Schedule make_schedule(std::string_view name, const ScheduleRequest& request);

// Returns the schedule of an action table (csv.h). Throws ConfigError with every problem of the table, or naming every
// number in which table and request differ: ranks, microbatches, and stages per rank if the request gives them.
Schedule schedule_from_table(std::string_view table, std::string name, const ScheduleRequest& request);

}  // namespace braid
