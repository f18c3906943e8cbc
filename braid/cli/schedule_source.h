// The schedules that a command line names: names of generators, and file:PATH for an action table. Schedules are not
// validated here (validate.h).
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

// Returns true for file:PATH.
bool is_file(const NamedSchedule& named);
// Returns PATH. REQUIRES: is_file(named).
std::string table_path(const NamedSchedule& named);

// Returns the schedules in the order of the names.
// * `request` has 0 for ranks, microbatches and chunks that were not given. A table needs none of them, but must agree
//   with those given.
// * With several names, chunks apply only to the schedules that take them.
// * Problems, including those of a schedule's conditions, have the options' names as keys. A schedule with problems is
//   nullopt.
// * With Numbers::Wrong, the request's numbers are known to be wrong: only names and tables are checked.
enum class Numbers { Good, Wrong };
std::vector<std::optional<Schedule>> make_schedules(const std::vector<NamedSchedule>& names,
                                                    const ScheduleRequest& request, Numbers numbers,
                                                    OptionReader& reader);

}  // namespace braid::cli
