// Makes trial steps. The first one also sets up state for later steps, so it is not timed.
#include "braid/train/trial_steps.h"

#include <algorithm>

#include "braid/base/host.h"
#include "braid/base/median.h"
#include "braid/launch/launcher.h"
#include "braid/param/memory_account.h"
#include "braid/spec/rank_hosts.h"
#include "braid/train/compute_device.h"
#include "braid/train/trainer.h"

namespace braid::train {

template <class Pack>
void members(Pack& pack, TrialSteps& tried) {
  pack(tried.step_seconds, tried.bubble_fraction, tried.peak_bytes);
}

namespace {

TrialSteps tried_on(const RunSpec& spec, const data::Corpus& corpus, int steps, const RunWorld& world) {
  Trainer trainer(spec, corpus, world);
  std::vector<double> seconds, bubbles;
  StepReport report = trainer.step();
  for (int step = 1; step < steps; ++step) {
    report = trainer.step();
    seconds.push_back(report.seconds);
    bubbles.push_back(report.bubble_fraction);
  }
  TrialSteps tried{median(seconds), median(bubbles)};
  for (const param::MemoryUse& use : report.memory) {
    tried.peak_bytes = std::max(tried.peak_bytes, static_cast<double>(use.peak_total_bytes));
  }
  return tried;
}

TrialSteps tried_by_rank(const RunSpec& spec, const data::Corpus& corpus, int steps, Communicator& world) {
  param::account_memory_to(world.rank());
  param::reset_memory_peak(world.rank());
  enter_device(spec);
  return on_mesh(spec, world, [&](const RunWorld& roles) { return tried_on(spec, corpus, steps, roles); });
}

}  // namespace

TrialSteps run_trial_steps(const RunSpec& spec, const data::Corpus& corpus, int steps) {
  param::install_memory_accounting();
  return values_by_rank(
      launcher(spec.run), static_cast<int>(spec::num_world_ranks(spec)),
      [&](Communicator& world) { return tried_by_rank(spec, corpus, steps, world); },
      {.threads_per_rank = spec::threads_per_rank(spec, num_cores()), .signals = SignalsTo::Caller})[0];
}

}  // namespace braid::train
