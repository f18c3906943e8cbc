// Makes a run of its own for every point.
#include "braid/train/measure_scaling.h"

#include <algorithm>

#include "braid/base/host.h"
#include "braid/spec/problems.h"
#include "braid/spec/rank_hosts.h"
#include "braid/train/compute_device.h"
#include "braid/train/run.h"
#include "braid/train/run_data.h"
#include "braid/train/step_schedule.h"
#include "braid/train/trial_steps.h"

namespace braid::train {
namespace {

struct Setting {
  RunSpec spec;
  MeasuredScaling::Point point;
};

Setting setting(RunSpec spec, int data, int batch, int threads) {
  spec.mesh.data = data;
  spec.mesh.batch_shares = kEqualShares;
  spec.train.batch = batch;
  spec.train.threads = threads;
  return {std::move(spec), {data}};
}

void refuse_problems(const std::vector<Setting>& settings) {
  std::vector<Problem> found;
  for (const Setting& setting : settings) {
    for (Problem& problem : spec::problems(setting.spec, host_limits())) {
      const bool known =
          std::any_of(found.begin(), found.end(), [&](const Problem& p) { return text(p) == text(problem); });
      if (!known) found.push_back(std::move(problem));
    }
  }
  if (!found.empty()) throw ConfigError(std::move(found));
  for (const Setting& setting : settings) refuse_faulty_schedule(setting.spec);
}

void measure(Setting& setting, const data::Corpus& corpus, int steps) {
  const RunSpec& spec = setting.spec;
  setting.point.step_seconds = run_trial_steps(spec, corpus, steps + 1).step_seconds;
  const double tokens = static_cast<double>(int64_t{spec.train.batch} * spec.model.context);
  setting.point.tokens_per_second = tokens / setting.point.step_seconds;
}

}  // namespace

MeasuredScaling measure_scaling(const RunSpec& given, const ScalingRequest& request) {
  const RunData data(given.data);
  RunSpec spec = data.resolved(given);
  spec.train.steps = std::max(spec.train.steps, request.steps + 1);
  spec.mesh.data = request.ranks.back();
  const int threads = spec::threads_per_rank(spec, num_cores());
  std::vector<Setting> settings;
  for (const int ranks : request.ranks) settings.push_back(setting(spec, ranks, spec.train.batch, threads));
  for (const int ranks : request.ranks) {
    settings.push_back(setting(spec, ranks, spec.train.batch * ranks / request.ranks.front(), threads));
  }
  refuse_problems(settings);
  open_device(spec);
  const data::Corpus corpus = data.corpus(spec);
  MeasuredScaling scaling;
  for (size_t i = 0; i < settings.size(); ++i) {
    measure(settings[i], corpus, request.steps);
    (i < request.ranks.size() ? scaling.strong : scaling.weak).push_back(settings[i].point);
  }
  return scaling;
}

}  // namespace braid::train
