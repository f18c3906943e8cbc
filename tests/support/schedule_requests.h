// Every schedule with every size that it can have, for tests that hold for all of them.
#pragma once

#include <string>
#include <vector>

#include "braid/base/text.h"
#include "braid/schedule/generators.h"

namespace braid {

struct NamedRequest {
  std::string name;
  ScheduleRequest request;

  Schedule schedule() const { return make_schedule(name, request); }
  std::string text() const {
    return cat(name, " ", request.ranks, " ranks ", request.microbatches, " microbatches ", request.chunks, " chunks ",
               request.group, " group");
  }
};

// Those among `requests` that schedule_problems() has nothing against, for every schedule.
inline std::vector<NamedRequest> valid_requests(const std::vector<ScheduleRequest>& requests) {
  std::vector<NamedRequest> valid;
  for (const auto& name : schedule_names()) {
    for (const auto& request : requests) {
      if (schedule_problems(name, request).empty()) valid.push_back({name, request});
    }
  }
  return valid;
}

// Every size up to these, stages per rank and groups left to the schedule.
inline std::vector<NamedRequest> valid_requests(int most_ranks, int most_microbatches) {
  std::vector<ScheduleRequest> requests;
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    for (int microbatches = 1; microbatches <= most_microbatches; ++microbatches) {
      requests.push_back({.ranks = ranks, .microbatches = microbatches});
    }
  }
  return valid_requests(requests);
}

}  // namespace braid
