// Everybody's minimum is assigned at once, the rest one by one to the rank that would finish it first.
#include "braid/plan/balanced_shares.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "braid/base/errors.h"
#include "braid/schedule/generators.h"
#include "braid/spec/batch_shares.h"

namespace braid::plan {
namespace {

// Below its exact part, which nobody can stay under, or 1.
std::vector<int> least_units(const std::vector<double>& seconds, int num_units) {
  double rate = 0;
  for (const double one : seconds) rate += 1 / one;
  std::vector<int> units;
  for (const double one : seconds) units.push_back(std::max(static_cast<int>(num_units / (rate * one)), 1));
  const bool too_many = std::accumulate(units.begin(), units.end(), int64_t{0}) > num_units;
  return too_many ? std::vector<int>(seconds.size(), 1) : units;
}

}  // namespace

std::vector<int> balanced_units(const std::vector<double>& seconds, int num_units) {
  check(!seconds.empty() && num_units >= std::ssize(seconds), "there is a unit for everybody");
  std::vector<int> units = least_units(seconds, num_units);
  using Done = std::pair<double, size_t>;  // with one unit more, and who
  std::priority_queue<Done, std::vector<Done>, std::greater<>> next;
  const auto wait_for = [&](size_t who) { next.emplace((units[who] + 1) * seconds[who], who); };
  for (size_t who = 0; who < seconds.size(); ++who) wait_for(who);
  for (int left = num_units - std::accumulate(units.begin(), units.end(), 0); left > 0; --left) {
    const size_t who = next.top().second;
    next.pop();
    ++units[who];
    wait_for(who);
  }
  return units;
}

std::string balanced_shares(const std::vector<double>& seconds, std::string_view schedule, ScheduleRequest step) {
  const int all = step.microbatches;
  for (const int unit : {1, step.ranks}) {  // some schedules take multiples of their ranks alone
    if (all % unit != 0 || all / unit < std::ssize(seconds)) continue;
    const std::vector<int> units = balanced_units(seconds, all / unit);
    const auto is_taken = [&](int count) {
      step.microbatches = count * unit;
      return schedule_problems(schedule, step).empty();
    };
    if (std::ranges::all_of(units, is_taken)) return spec::shares_text(units);
  }
  return kEqualShares;
}

}  // namespace braid::plan
