// The oracle of plan/search.h: every layout is predicted.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/plan/search.h"

namespace braid::plan {

inline Plan exhaustive_search(const SearchRequest& request, Predictor& predictor) {
  Plan plan;
  std::vector<PlannedLayout> all;
  for (const LayoutPoint& point : layout_space(request.space)) {
    ++plan.searched;
    std::optional<PlannedLayout> layout = planned_layout(request, point, predictor);
    if (!layout || !layout->prediction.fits() || !is_legal(layout->spec)) continue;
    layout->overrides = overrides(request.space.run, layout->spec);
    all.push_back(*std::move(layout));
  }
  std::ranges::stable_sort(all, {}, [](const PlannedLayout& layout) { return layout.prediction.step_seconds(); });
  for (PlannedLayout& layout : all) {
    const auto same = [&](const PlannedLayout& other) { return other.spec == layout.spec; };
    if (std::ssize(plan.layouts) == request.top) break;
    if (std::ranges::none_of(plan.layouts, same)) plan.layouts.push_back(std::move(layout));
  }
  return plan;
}

}  // namespace braid::plan
