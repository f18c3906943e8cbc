// One criterion after another, each within what the ones before have reached.
#include "braid/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "braid/base/counted.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/plan/cut_descent.h"
#include "braid/plan/cut_search.h"

namespace braid::plan {
namespace {

using End = CutSearch::End;

constexpr double kGibi = 1024.0 * 1024 * 1024;
constexpr double kSumTolerance = 1 + 1e-9;  // sums of the same stages in another order

// The best stages as if each had a rank of its own, without limit: a start for what follows.
std::vector<int> balanced_stages(PartitionRequest request, const StageCosts& costs) {
  request.holders.clear();
  request.speeds.clear();
  for (int stage = 0; stage < costs.num_stages(); ++stage) {
    request.holders.push_back({stage, stage, 1, 0});
    request.speeds.push_back(costs.slowest_speed(stage));
  }
  const StageCosts alone(request);
  Caps caps;
  caps.rank_seconds = search_cuts(alone, caps, Criterion::RankSeconds).value;
  return search_cuts(alone, caps, Criterion::Squares).first_unit;
}

std::string stages_of(const PartitionRequest& request, int rank) {
  std::vector<std::string> stages;
  for (const Holder& holder : request.holders) {
    if (holder.rank == rank) stages.push_back(cat(holder.stage));
  }
  return cat(stages.size() == 1 ? "stage " : "stages ", joined(stages));
}

std::string units_of(const PartitionRequest& request, const std::vector<int>& first_unit, int rank) {
  std::vector<std::string> ranges;
  for (const Holder& holder : request.holders) {
    if (holder.rank != rank) continue;
    const std::string &first = request.units[first_unit[holder.stage]].name,
                      &last = request.units[first_unit[holder.stage + 1] - 1].name;
    ranges.push_back(first == last ? first : cat(first, " .. ", last));
  }
  return joined(ranges);
}

// `tightest`: the partition whose fullest rank is least full, or the best that is known of it.
[[noreturn]] void refuse(const PartitionRequest& request, const Partition& tightest) {
  const auto fullest = std::max_element(tightest.rank_bytes.begin(), tightest.rank_bytes.end());
  const int rank = static_cast<int>(fullest - tightest.rank_bytes.begin());
  const double needed = std::ceil(static_cast<double>(*fullest) / kGibi * 1e3) / 1e3;
  const double limit = std::round(static_cast<double>(request.limit_bytes) / kGibi * 1e6) / 1e6;
  throw ConfigError(
      {{"memory.limit_gb", exact(limit),
        cat("must leave room for the model: even in the cut that needs least, rank ", rank, " (",
            stages_of(request, rank), ": ", units_of(request, tightest.first_unit, rank), ") needs ",
            human_bytes(static_cast<double>(*fullest)), ", ", *fullest - request.limit_bytes, " bytes over the limit"),
        exact(needed)}});
}

void refuse_too_few_units(const PartitionRequest& request, const StageCosts& costs) {
  if (costs.num_units() >= costs.num_stages()) return;
  throw ConfigError({{"pipeline.partition", "",
                      cat("must leave every stage a part of the model: ", counted(costs.num_stages(), "stage"), ", ",
                          counted(costs.num_units(), "part")),
                      ""}});
}

// Criterion after criterion; nothing when one of them has too many states.
std::vector<int> best_cuts(const StageCosts& costs, Caps caps) {
  CutSearch found = search_cuts(costs, caps, Criterion::RankSeconds);
  if (found.end == End::TooManyStates) return {};
  check(found.end == End::Found, "a partition within the limit exists");
  caps.rank_seconds = found.value;
  found = search_cuts(costs, caps, Criterion::StageSeconds);
  if (found.end != End::Found) return {};
  caps.stage_seconds = found.value;
  return search_cuts(costs, caps, Criterion::Squares).first_unit;
}

}  // namespace

std::vector<Holder> holders(const Schedule& schedule) {
  std::map<std::pair<int, int>, Holder> found;  // by stage and rank
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    std::map<int, int> now, done;  // microbatches by stage
    for (const Action& action : schedule.programs[rank]) {
      Holder& holder = found.try_emplace({action.stage, rank}, Holder{action.stage, rank, 0, 0}).first->second;
      if (action.op == Op::Forward) holder.in_flight = std::max(holder.in_flight, ++now[action.stage]);
      if (action.op == Op::Forward) holder.share = double(++done[action.stage]) / schedule.num_microbatches;
      if (action.op == Op::FullBackward || action.op == Op::WeightGrad) --now[action.stage];
    }
  }
  std::vector<Holder> all;
  for (const auto& [place, holder] : found) {
    if (holder.share > 0) all.push_back(holder);
  }
  return all;
}

Partition partition_units(const PartitionRequest& request) {
  const StageCosts costs(request);
  refuse_too_few_units(request, costs);
  const int64_t limit = request.limit_bytes;
  Caps caps;
  const auto start = improved_cuts(costs, balanced_stages(request, costs), limit);
  if (limit > 0) {
    caps.rank_bytes = limit;
    const CutSearch tightest = search_cuts(costs, {}, Criterion::RankBytes);
    const auto cuts = tightest.end == End::Found ? tightest.first_unit : start;
    const Partition least = costs.partition(cuts);
    if (score(least, limit).bytes_over > 0) refuse(request, least);
  }
  const Partition found = costs.partition(start);
  if (score(found, limit).bytes_over == 0) caps.rank_seconds = score(found, limit).rank_seconds * kSumTolerance;
  const auto best = best_cuts(costs, caps);
  if (!best.empty()) return costs.partition(best);
  Partition made = found;
  made.quality = Partition::Quality::Found;
  return made;
}

}  // namespace braid::plan
