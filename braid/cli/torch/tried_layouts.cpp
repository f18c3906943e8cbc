// Runs layouts of a plan. All layouts are checked before the first one runs.
#include "braid/cli/torch/tried_layouts.h"

#include <algorithm>
#include <utility>

#include "braid/cli/option_rules.h"
#include "braid/cli/torch/room_for_run.h"
#include "braid/spec/problems.h"
#include "braid/train/compute_device.h"
#include "braid/train/run.h"
#include "braid/train/run_data.h"
#include "braid/train/trial_steps.h"

namespace braid::cli {
namespace {

constexpr int kSteps = 8;

RunSpec tried_spec(RunSpec spec) {
  spec.train.steps = std::max(spec.train.steps, kSteps);
  spec.train.init.clear();  // the time does not depend on the weights
  spec.train.resume.clear();
  return spec;
}

}  // namespace

void try_layouts(std::vector<plan::PlannedLayout>& layouts, int count) {
  if (layouts.empty()) return;
  const auto end = layouts.begin() + std::min<int64_t>(count, std::ssize(layouts));
  std::vector<Problem> found;
  for (auto layout = layouts.begin(); layout != end; ++layout) {
    for (Problem& problem : spec::problems(tried_spec(layout->spec), train::host_limits())) {
      const auto is_same = [&](const Problem& other) { return text(other) == text(problem); };
      if (std::ranges::none_of(found, is_same)) found.push_back(std::move(problem));
    }
  }
  throw_problems(std::exchange(found, {}));
  const train::RunData data(layouts.front().spec.data);
  const data::Corpus corpus = data.corpus(data.resolved(layouts.front().spec));
  for (auto layout = layouts.begin(); layout != end; ++layout) {
    collect_problems(found, [&] { refuse_without_room(data.resolved(tried_spec(layout->spec)), {}); });
  }
  throw_problems(std::move(found));
  train::open_device(layouts.front().spec);
  for (auto layout = layouts.begin(); layout != end; ++layout) {
    const train::TrialSteps tried = train::run_trial_steps(data.resolved(tried_spec(layout->spec)), corpus, kSteps);
    layout->measured = {tried.step_seconds, tried.bubble_fraction, tried.peak_bytes};
  }
}

}  // namespace braid::cli
