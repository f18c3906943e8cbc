// The schedules without flush: 1F1B's order with updates added.
#include "braid/schedule/generators/asynchronous.h"

#include <algorithm>
#include <tuple>

#include "braid/base/text.h"
#include "braid/schedule/generators/flush.h"
#include "braid/schedule/generators/stage_placement.h"

namespace braid::schedule {
namespace {

int update_group(const ScheduleRequest& request) { return request.group > 0 ? request.group : request.ranks; }

// Returns 1F1B with an update after every `group` backwards.
Schedule updated(const char* name, int ranks, int microbatches, int group) {
  Schedule schedule = one_f_one_b(ranks, microbatches);
  schedule.name = name;
  for (auto& program : schedule.programs) {
    Program longer;
    longer.reserve(program.size() + microbatches / group);
    for (const auto& action : program) {
      longer.push_back(action);
      const bool last = action.op == Op::FullBackward && (action.micro + 1) % group == 0;
      if (last) longer.push_back({Op::Update, action.stage, action.micro});
    }
    program = std::move(longer);
  }
  return schedule;
}

}  // namespace

Schedule pipedream(int ranks, int microbatches) {
  Schedule schedule = updated("pipedream", ranks, microbatches, 1);
  schedule.promise.weight_versions = std::min(ranks, microbatches);
  return schedule;
}

std::vector<Problem> pipedream_2bw_problems(const ScheduleRequest& request) {
  const auto [p, m, group] = std::tuple(request.ranks, request.microbatches, update_group(request));
  if (group < p) {
    return {{"group", std::to_string(group), cat("must be at least ranks (", p, "): microbatches of an update"),
             std::to_string(p)}};
  }
  if (m % group == 0) return {};
  const std::string rule = cat("must be a multiple of the microbatches of an update (", group, ")");
  const auto whole = [group = group](int micros) { return micros % group == 0; };
  return {{"microbatches", std::to_string(m), rule, nearest_number(m, {group, m + group}, whole)}};
}

Schedule pipedream_2bw(const ScheduleRequest& request) {
  const int group = update_group(request);
  Schedule schedule = updated("pipedream-2bw", request.ranks, request.microbatches, group);
  schedule.promise.weight_versions = request.microbatches > group ? 2 : 1;
  return schedule;
}

}  // namespace braid::schedule
