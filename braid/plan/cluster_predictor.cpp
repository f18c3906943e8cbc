// Predictions with a small cache of runs.
#include "braid/plan/cluster_predictor.h"

#include <algorithm>

#include "braid/plan/balanced_partition.h"
#include "braid/plan/predict_run.h"

namespace braid::plan {
namespace {

// A search that chooses recompute by stage tries several policies for each ZeRO stage. Their runs fit in the cache.
constexpr size_t kMostRuns = 8;

}  // namespace

PipelinedRun& ClusterPredictor::run_of(const RunSpec& spec) {
  auto run = std::ranges::find_if(runs_, [&](const PipelinedRun& one) { return alike_but_for_zero(spec, one.spec()); });
  if (run == runs_.end()) {
    if (runs_.size() == kMostRuns) runs_.pop_back();
    PredictOptions options = options_;
    options.account = account_of(spec);
    run = runs_.emplace(runs_.begin(), spec, cluster_, options);
  } else {
    runs_.splice(runs_.begin(), runs_, run);
  }
  return runs_.front();
}

const AccountPtr& ClusterPredictor::account_of(const RunSpec& spec) {
  if (!account_ || account_->spec != spec.model || groups_ != spec.optimizer.groups) {
    account_ = plan::account_of(spec);
    groups_ = spec.optimizer.groups;
  }
  return account_;
}

Prediction ClusterPredictor::predict(const RunSpec& spec) {
  return run_of(spec).with_zero(spec.sync.zero, spec.sync.zero_group);
}

std::string ClusterPredictor::balanced_shares(const RunSpec& spec) { return run_of(spec).balanced_shares(); }

std::string ClusterPredictor::balanced_partition(const RunSpec& spec) {
  if (cut_.empty() || !alike_but_for_zero(spec, cut_of_)) {
    cut_ = braid::plan::balanced_partition(spec, cluster_, options_.formulas, account_of(spec));
    cut_of_ = spec;
  }
  return cut_;
}

double ClusterPredictor::least_seconds(const RunSpec& spec) {
  return least_step_seconds(spec, cluster_, options_.formulas, account_of(spec));
}

int64_t ClusterPredictor::least_bytes(const RunSpec& spec) {
  return least_rank_bytes(spec, cluster_, options_.formulas, account_of(spec));
}

}  // namespace braid::plan
