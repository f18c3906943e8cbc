// Makes schedules from their names.
#include "braid/cli/schedule_source.h"

#include <algorithm>

#include "braid/base/checked_file.h"
#include "braid/base/text.h"
#include "braid/schedule/csv.h"

namespace braid::cli {
namespace {

constexpr std::string_view kFile = "file:";

// Returns the option for a field of the request: "--input-grad" for "input_grad".
std::string option_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

bool takes_chunks(const NamedSchedule& named, int chunks) {
  const ScheduleTraits* traits = find_schedule(named.name);
  return traits != nullptr && (traits->chunks == 0 || traits->chunks == chunks);
}

class Source {
 public:
  Source(const ScheduleRequest& request, Numbers numbers, OptionReader& reader)
      : request_(request), numbers_(numbers), reader_(reader) {}

  std::optional<Schedule> make(const NamedSchedule& named, int chunks) {
    if (is_file(named)) return read(named);
    ScheduleRequest request = request_;
    request.chunks = chunks;
    std::vector<Problem> problems = schedule_problems(named.name, request);
    if (numbers_ == Numbers::Wrong) std::erase_if(problems, [](const Problem& p) { return p.key != "schedule"; });
    for (Problem& problem : problems) {
      problem.key = problem.key == "schedule" ? named.key : option_of(problem.key);
      reader_.add_new(problem);
    }
    if (!problems.empty() || numbers_ == Numbers::Wrong) return std::nullopt;
    return make_schedule(named.name, request);
  }

 private:
  std::optional<Schedule> read(const NamedSchedule& named) {
    const std::string path = table_path(named);
    try {
      Schedule schedule = schedule::from_csv(named_file_content({named.key, named.name, path}), named.name);
      if (numbers_ == Numbers::Wrong) return schedule;
      require_equal("--ranks", request_.ranks, schedule.num_ranks(), path);
      require_equal("--microbatches", request_.microbatches, schedule.num_microbatches, path);
      if (request_.chunks > 0) {
        const int64_t stages = int64_t{request_.chunks} * schedule.num_ranks();
        if (stages != schedule.num_stages)
          refuse("--chunks", request_.chunks, cat(path, " has ", counted(schedule.num_stages, "stage")));
      }
      return schedule;
    } catch (const ConfigError& error) {
      for (Problem problem : error.problems()) {
        if (problem.key != named.key) problem.key = cat(path, ", ", problem.key);
        reader_.add_new(problem);
      }
    }
    return std::nullopt;
  }

  void require_equal(const char* key, int given, int found, const std::string& path) {
    if (given > 0 && given != found) refuse(key, given, cat(path, " has ", found));
  }

  void refuse(const char* key, int given, std::string rule) {
    reader_.add_new({key, std::to_string(given), std::move(rule), ""});
  }

  const ScheduleRequest& request_;
  const Numbers numbers_;
  OptionReader& reader_;
};

}  // namespace

bool is_file(const NamedSchedule& named) { return named.name.starts_with(kFile); }

std::string table_path(const NamedSchedule& named) { return named.name.substr(kFile.size()); }

std::vector<std::optional<Schedule>> make_schedules(const std::vector<NamedSchedule>& names,
                                                    const ScheduleRequest& request, Numbers numbers,
                                                    OptionReader& reader) {
  const auto takes = [&](const NamedSchedule& named) { return takes_chunks(named, request.chunks); };
  const bool some_take = std::any_of(names.begin(), names.end(), takes);
  Source source(request, numbers, reader);
  std::vector<std::optional<Schedule>> schedules;
  for (const auto& named : names) {
    const bool spared = names.size() > 1 && some_take && !takes(named);
    schedules.push_back(source.make(named, spared ? 0 : request.chunks));
  }
  return schedules;
}

}  // namespace braid::cli
