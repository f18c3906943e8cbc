// Best-first search: layouts are predicted in the order of their lower bounds.
#include "braid/plan/search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/spec/partition.h"
#include "braid/spec/problems.h"

namespace braid::plan {
namespace {

// Returns the spec as it is validated before a run, because proposals must be runnable. A plan needs no data, so
// missing data paths are filled in.
RunSpec about_to_run(RunSpec spec) {
  if (spec.data.paths.empty()) spec.data.paths = {"text"};
  return spec;
}

// Returns stronger recompute policies for the stages of ranks that exceed their memory.
std::vector<RecomputeChoice> next_policies(std::vector<RecomputeChoice> policies, const Prediction& prediction) {
  const size_t ranks = prediction.memory.size();
  for (size_t stage = 0; stage < policies.size(); ++stage) {
    // This is the stage's rank in a looped placement. With other placements it can be another rank, and stages
    // recompute a little more than they must.
    const RankMemory& rank = prediction.memory[stage % ranks];
    if (rank.total() <= prediction.memory_bytes) continue;
    policies[stage] = policies[stage] == RecomputeChoice::None ? RecomputeChoice::Selective : RecomputeChoice::Full;
  }
  return policies;
}

std::string policies_text(const std::vector<RecomputeChoice>& policies) {
  const bool alike = std::ranges::count(policies, policies[0]) == std::ssize(policies);
  std::vector<std::string> words;
  for (const RecomputeChoice policy : policies) words.emplace_back(word(policy));
  return alike ? words[0] : joined(words, ",");
}

void choose_recompute(RunSpec& spec, Prediction& prediction, Predictor& predictor) {
  std::vector policies(static_cast<size_t>(spec::num_stages(spec)), RecomputeChoice::None);
  while (!prediction.fits()) {
    auto next = next_policies(policies, prediction);
    if (next == policies) return;
    policies = std::move(next);
    spec.memory.recompute = policies_text(policies);
    prediction = predictor.predict(spec);
  }
}

// The layouts to keep, best first. Of equal ones, the one that comes first in the space is better.
class Best {
 public:
  explicit Best(size_t count) : count_(count) {}

  double worst() const {
    return kept_.size() < count_ ? std::numeric_limits<double>::infinity() : kept_.back().first.first;
  }
  // Keeps the layout if it is among the best, fits and has no problems.
  void consider(size_t place, std::optional<PlannedLayout> layout) {
    if (!layout || layout->prediction.step_seconds() > worst()) return;
    if (layout->prediction.fits() && is_legal(layout->spec)) add(place, *std::move(layout));
  }
  std::vector<PlannedLayout> take(const RunSpec& run) {
    std::vector<PlannedLayout> all;
    for (auto& [key, layout] : kept_) {
      layout.overrides = overrides(run, layout.spec);
      all.push_back(std::move(layout));
    }
    return all;
  }

 private:
  void add(size_t place, PlannedLayout layout) {
    // The policies chosen for ByStage may be those of another layout.
    const auto same = [&](const auto& one) { return one.second.spec == layout.spec; };
    if (std::ranges::any_of(kept_, same)) return;
    const std::pair key{layout.prediction.step_seconds(), place};
    const auto at = std::ranges::upper_bound(kept_, key, {}, [](const auto& one) { return one.first; });
    kept_.emplace(at, key, std::move(layout));
    if (kept_.size() > count_) kept_.pop_back();
  }

  using Key = std::pair<double, size_t>;
  size_t count_;
  std::vector<std::pair<Key, PlannedLayout>> kept_;
};

// The layouts [begin, end) of the space, which have the same work.
struct WorkGroup {
  double least_seconds = 0;
  size_t begin = 0, end = 0;
};

std::vector<WorkGroup> groups_by_bound(const SearchRequest& request, const std::vector<LayoutPoint>& layouts,
                                       Predictor& predictor) {
  std::vector<WorkGroup> groups;
  RunSpec spec = request.space.run;
  for (size_t place = 0; place < layouts.size(); ++place) {
    if (groups.empty() || !same_work(layouts[groups.back().begin], layouts[place])) {
      set_layout(spec, layouts[place]);
      groups.push_back({predictor.least_seconds(spec), place, place});
    }
    groups.back().end = place + 1;
  }
  std::ranges::stable_sort(groups, {}, &WorkGroup::least_seconds);
  return groups;
}

}  // namespace

std::vector<Problem> problems_to_train(RunSpec spec) {
  return spec::problems(about_to_run(std::move(spec)), spec::any_hosts());
}

bool is_legal(RunSpec spec) { return !spec::has_problems(about_to_run(std::move(spec)), spec::any_hosts()); }

std::optional<PlannedLayout> planned_layout(const SearchRequest& request, const LayoutPoint& layout,
                                            Predictor& predictor) {
  PlannedLayout planned{.layout = layout, .spec = request.space.run};
  set_layout(planned.spec, layout);
  if (layout.cut == CutChoice::Balanced) {
    planned.spec.pipeline.partition = predictor.balanced_partition(planned.spec);
    if (spec::is_even(planned.spec.pipeline)) return {};
  }
  if (layout.shares == BatchSplitChoice::Balanced) {
    planned.spec.mesh.batch_shares = predictor.balanced_shares(planned.spec);
    if (planned.spec.mesh.batch_shares == kEqualShares) return {};
  }
  planned.prediction = predictor.predict(planned.spec);
  if (layout.recompute == RecomputeChoice::ByStage) choose_recompute(planned.spec, planned.prediction, predictor);
  return planned;
}

Plan search(const SearchRequest& request, Predictor& predictor) {
  const double begin = now_seconds();
  const std::vector<LayoutPoint> layouts = layout_space(request.space);
  Best best(static_cast<size_t>(request.top));
  RunSpec spec = request.space.run;
  for (const WorkGroup& group : groups_by_bound(request, layouts, predictor)) {
    if (group.least_seconds > best.worst()) break;
    for (size_t place = group.begin; place < group.end; ++place) {
      set_layout(spec, layouts[place]);
      if (predictor.least_bytes(spec) > request.memory_bytes) continue;
      best.consider(place, planned_layout(request, layouts[place], predictor));
    }
  }
  return {std::ssize(layouts), now_seconds() - begin, best.take(request.space.run), ""};
}

}  // namespace braid::plan
