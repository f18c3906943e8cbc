// Best bound first.
#include "braid/search/search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/text.h"
#include "braid/spec/pipeline_stages.h"
#include "braid/spec/problems.h"

namespace braid {
namespace {

// What is proposed runs: it is judged as if it were about to.
constexpr HostLimits kAnyHosts{std::numeric_limits<int>::max()};

// Of ranks that hold too much, what their stages compute again.
std::vector<std::string> next_policies(std::vector<std::string> policies, const Prediction& prediction) {
  const size_t ranks = prediction.memory.size();
  for (size_t stage = 0; stage < policies.size(); ++stage) {
    // Of stages in a loop; others have one or two on a rank, and then both give up a little more than they must.
    const RankMemory& rank = prediction.memory[stage % ranks];
    if (rank.total() <= prediction.memory_bytes) continue;
    policies[stage] = policies[stage] == "none" ? "selective" : "full";
  }
  return policies;
}

void choose_recompute(RunSpec& spec, Prediction& prediction, Foresight& foresight) {
  std::vector<std::string> policies(static_cast<size_t>(num_stages(spec)), "none");
  while (!prediction.fits()) {
    auto next = next_policies(policies, prediction);
    if (next == policies) return;
    policies = std::move(next);
    const bool alike = std::ranges::count(policies, policies[0]) == std::ssize(policies);
    spec.memory.recompute = alike ? policies[0] : joined(policies, ",");
    prediction = foresight.predict(spec);
  }
}

// The layouts to keep, the best first; of equals the one that came first in the space.
class Best {
 public:
  explicit Best(size_t count) : count_(count) {}

  double worst() const {
    return kept_.size() < count_ ? std::numeric_limits<double>::infinity() : kept_.back().first.first;
  }
  void add(size_t place, PlannedLayout layout) {
    const std::pair key{layout.prediction.step_seconds(), place};
    const auto at = std::ranges::upper_bound(kept_, key, {}, [](const auto& one) { return one.first; });
    kept_.emplace(at, key, std::move(layout));
    if (kept_.size() > count_) kept_.pop_back();
  }
  std::vector<PlannedLayout> take() {
    std::vector<PlannedLayout> all;
    for (auto& [key, layout] : kept_) all.push_back(std::move(layout));
    return all;
  }

 private:
  using Key = std::pair<double, size_t>;
  size_t count_;
  std::vector<std::pair<Key, PlannedLayout>> kept_;
};

bool may_fit(const SearchRequest& request, const LayoutPoint& layout, const RunSpec& spec, Foresight& foresight) {
  RunSpec least = spec;
  if (layout.recompute.empty()) least.memory.recompute = "full";
  return foresight.least_bytes(least) <= request.memory_bytes;
}

void consider(const SearchRequest& request, const std::vector<LayoutPoint>& layouts, size_t place, Foresight& foresight,
              Best& best) {
  const RunSpec spec = with_layout(request.space.run, layouts[place]);
  if (has_problems(spec, kAnyHosts)) return;
  PlannedLayout layout = planned_layout(request, layouts[place], foresight);
  if (layout.prediction.fits()) best.add(place, std::move(layout));
}

}  // namespace

PlannedLayout planned_layout(const SearchRequest& request, const LayoutPoint& layout, Foresight& foresight) {
  PlannedLayout planned{.layout = layout};
  planned.spec = with_layout(request.space.run, layout);
  planned.prediction = foresight.predict(planned.spec);
  if (layout.recompute.empty()) choose_recompute(planned.spec, planned.prediction, foresight);
  planned.overrides = overrides(request.space.run, planned.spec);
  return planned;
}

Plan search(const SearchRequest& request, Foresight& foresight) {
  const double begin = now_seconds();
  const std::vector<LayoutPoint> layouts = layout_space(request.space);
  std::vector<std::pair<double, size_t>> by_bound;
  for (size_t place = 0; place < layouts.size(); ++place) {
    by_bound.emplace_back(foresight.least_seconds(with_layout(request.space.run, layouts[place])), place);
  }
  std::ranges::sort(by_bound);
  Best best(static_cast<size_t>(request.top));
  for (const auto& [bound, place] : by_bound) {
    if (bound > best.worst()) break;
    const RunSpec spec = with_layout(request.space.run, layouts[place]);
    if (may_fit(request, layouts[place], spec, foresight)) consider(request, layouts, place, foresight, best);
  }
  return {std::ssize(layouts), now_seconds() - begin, best.take(), ""};
}

Plan exhaustive_search(const SearchRequest& request, Foresight& foresight) {
  const double begin = now_seconds();
  const std::vector<LayoutPoint> layouts = layout_space(request.space);
  Best best(static_cast<size_t>(request.top));
  for (size_t place = 0; place < layouts.size(); ++place) consider(request, layouts, place, foresight, best);
  return {std::ssize(layouts), now_seconds() - begin, best.take(), ""};
}

}  // namespace braid
