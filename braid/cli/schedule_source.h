// The schedules that a command line names: generators' names and file:PATH, an action table. It does not prove them
// (validate.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/cli/option_reader.h"
#include "braid/schedule/generators.h"

namespace braid::cli {

struct NamedSchedule {
  const char* key = "";  // the option that named it
  std::string name;
};

// True for file:PATH.
bool is_file(const NamedSchedule& named);
// Returns PATH. REQUIRES: is_file(named).
std::string table_path(const NamedSchedule& named);

// The schedules in the order of the names. `request` has 0 for ranks, microbatches and chunks that were not given; a
// table needs none of them, and must agree with those that were. With several names, chunks are for those schedules
// that take them. Problems, of the schedule's conditions too, have the options' names as keys; the schedules that have
// any are empty. When the request's numbers are known to be wrong, only names and tables are judged.
enum class Numbers { Good, Wrong };
std::vector<std::optional<Schedule>> make_schedules(const std::vector<NamedSchedule>& names,
                                                    const ScheduleRequest& request, Numbers numbers,
                                                    OptionReader& reader);

}  // namespace braid::cli
