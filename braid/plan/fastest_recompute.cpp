// Chooses options for the stages of each rank by their estimates, and corrects the estimates by predictions.
#include "braid/plan/fastest_recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "braid/base/text.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/plan/partition.h"
#include "braid/plan/rank_shards.h"
#include "braid/plan/stage_options.h"
#include "braid/schedule/passes.h"
#include "braid/spec/activation_blocks.h"
#include "braid/spec/partition.h"

namespace braid::plan {
namespace {

constexpr int kMostCorrections = 8;
constexpr const char* kNoBlocks = "0";

// The stages that a rank holds, or two ranks of a bidirectional pipeline.
struct StagesOfRank {
  std::vector<int> stages, ranks;
  std::vector<StageOption> options;  // of the stages together
  double correction = 0;             // predicted bytes minus those of the chosen option

  // Returns the fastest option within `bytes`, else the smallest.
  const StageOption& within(double bytes) const {
    const auto found = std::ranges::find_if(options, [&](const auto& option) { return option.bytes <= bytes; });
    return found == options.end() ? options.back() : *found;
  }
};

Schedule played_schedule(const PlannedRun& run) {
  const ScheduleRequest request{run.layout.pipe, run.layout.microbatches, run.layout.chunks, run.spec.pipeline.group};
  std::vector<StageBackward> backwards;
  for (const StageLoad& load : run.layout.stages) backwards.push_back(load.backward);
  return schedule::with_backwards(make_schedule(run.spec.pipeline.schedule, request), backwards);
}

// Returns the stages with all their options, if activations are on this tier.
std::vector<StagesOfRank> stages_of_ranks(RunSpec keeping, Tier activations) {
  keeping.memory.activations = activations;
  keeping.memory.recompute = "none";
  keeping.memory.activation_blocks = is_resident(activations) ? spec::kAllBlocks : kNoBlocks;
  const Cluster cluster = with_cores_of_ranks(nominal_cluster(keeping), keeping);
  const RunLayout layout = layout_of(keeping, cluster, FormulaSet::Braid);
  const std::vector<DeviceRates> rates = rates_of(keeping, cluster);
  const PlannedRun run{keeping, cluster, FormulaSet::Braid, layout, rates};
  std::map<int, std::vector<int>> stages_of;
  std::map<int, int> in_flight;  // by stage
  for (const Holder& holder : holders(played_schedule(run))) {
    stages_of[holder.rank].push_back(holder.stage);
    in_flight[holder.stage] = std::max(in_flight[holder.stage], holder.in_flight);
  }
  std::vector<StagesOfRank> all;
  for (const auto& [rank, stages] : stages_of) {
    const auto known = std::ranges::find(all, stages, &StagesOfRank::stages);
    if (known != all.end()) {
      known->ranks.push_back(rank);
      continue;
    }
    StagesOfRank& own = all.emplace_back(StagesOfRank{stages, {rank}});
    for (const int stage : stages) {
      std::vector<StageOption> options = stage_options(run, stage, in_flight[stage]);
      own.options = own.options.empty() ? std::move(options) : together(own.options, options);
    }
  }
  return all;
}

std::string value_of(const std::vector<std::string>& entries) {
  const bool alike = std::ranges::count(entries, entries[0]) == std::ssize(entries);
  return alike ? entries[0] : joined(entries, ",");
}

// The best policies of those tried.
class Tried {
 public:
  Tried(const RunSpec& spec, int64_t limit, const std::function<bool(const RunSpec&)>& is_legal)
      : spec_(spec), limit_(limit), is_legal_(is_legal) {}

  // Returns the prediction, or nothing if the run is illegal or cannot be predicted. `blocks`: on the tier of
  // activations, if there is one.
  std::optional<Prediction> add(const std::string& policies, const std::string& blocks) {
    RecomputePlan plan{policies, is_resident(spec_.memory.activations) ? spec::kAllBlocks : blocks, {}};
    plan.apply(spec_.memory);
    if (!is_legal_(spec_)) return std::nullopt;
    auto prediction = nominal_prediction(spec_);
    if (!prediction) return prediction;
    plan.prediction = *prediction;
    if (!best_ || is_better(plan.prediction, best_->prediction)) best_ = std::move(plan);
    return prediction;
  }
  bool fits() const { return best_ && best_->prediction.most_bytes() <= limit_; }
  const std::optional<RecomputePlan>& best() const { return best_; }

 private:
  bool is_better(const Prediction& one, const Prediction& other) const {
    const bool fits = one.most_bytes() <= limit_, other_fits = other.most_bytes() <= limit_;
    if (fits != other_fits) return fits;
    return fits ? one.step_seconds() < other.step_seconds() : one.most_bytes() < other.most_bytes();
  }

  RunSpec spec_;
  const int64_t limit_;
  const std::function<bool(const RunSpec&)>& is_legal_;
  std::optional<RecomputePlan> best_;
};

// Returns the least bytes for activations that the limit leaves to one of the ranks.
double left_for_activations(const StagesOfRank& own, const Prediction& prediction, int64_t limit) {
  double least = static_cast<double>(limit);
  for (const int rank : own.ranks) {
    const RankMemory& memory = prediction.memory[rank];
    least = std::min(least, static_cast<double>(limit - memory.total() + memory.activations));
  }
  return least;
}

// Chooses options for all ranks until their predicted bytes agree with the estimates.
void try_options(std::vector<StagesOfRank> ranks, const Prediction& none, int64_t limit, Tried& tried) {
  std::set<std::pair<std::string, std::string>> seen;
  size_t num_stages = 0;
  for (const StagesOfRank& own : ranks) num_stages = std::max(num_stages, size_t(own.stages.back()) + 1);
  std::vector<std::string> policies(num_stages), on_tier(num_stages);
  for (int round = 0; round < kMostCorrections; ++round) {
    std::vector<const StageOption*> chosen;
    for (const StagesOfRank& own : ranks) {
      chosen.push_back(&own.within(left_for_activations(own, none, limit) - own.correction));
      for (size_t i = 0; i < own.stages.size(); ++i) {
        policies[own.stages[i]] = chosen.back()->entries[i];
        on_tier[own.stages[i]] = cat(chosen.back()->on_tier[i]);
      }
    }
    if (!seen.emplace(value_of(policies), value_of(on_tier)).second) return;
    const auto prediction = tried.add(value_of(policies), value_of(on_tier));
    if (!prediction) return;
    for (size_t i = 0; i < ranks.size(); ++i) {
      double most = 0;
      for (const int rank : ranks[i].ranks) {
        const RankMemory& without = none.memory[rank];
        const int64_t bytes = prediction->memory[rank].total() - (without.total() - without.activations);
        most = std::max(most, static_cast<double>(bytes));
      }
      ranks[i].correction = most - chosen[i]->bytes;
    }
  }
}

// Tries the words for all stages, with each of `on_tier` as memory.activation_blocks.
void try_fixed(const std::vector<int>& num_blocks, const std::vector<const char*>& on_tier, Tried& tried) {
  for (const char* blocks : on_tier) {
    tried.add("none", blocks);
    tried.add("selective", blocks);
    for (int size = 1; size <= std::ranges::max(num_blocks); ++size) tried.add(cat("every:", size), blocks);
  }
}

}  // namespace

std::optional<RecomputePlan> fastest_recompute(const RunSpec& spec, int64_t limit,
                                               const std::function<bool(const RunSpec&)>& is_legal) {
  if (spec::is_measured(spec.pipeline)) return std::nullopt;
  Tried tried(spec, limit, is_legal);
  const auto none = tried.add("none", kNoBlocks);
  if (!none || tried.fits()) return tried.best();
  const bool may_move = !is_resident(spec.memory.activations);
  bool has_several = false;  // a rank has several stages
  // Blocks that may move have graphs of their own, which need a little more where they stay.
  for (const Tier tier :
       may_move ? std::vector{Tier::Resident, spec.memory.activations} : std::vector{Tier::Resident}) {
    const std::vector<StagesOfRank> ranks = stages_of_ranks(spec, tier);
    has_several |= std::ranges::any_of(ranks, [](const auto& own) { return own.stages.size() > 1; });
    try_options(ranks, *none, limit, tried);
  }
  // Buffers of gathered weights depend on the blocks that run together, and times of a tier on what else moves.
  const bool gathers = spec.sync.zero == 3 || !is_resident(spec.memory.parameters);
  const bool are_exact = !gathers && !may_move && !has_several && !spec::traits_of(spec.pipeline)->splits_backward;
  if (!are_exact || !tried.fits()) {
    const auto on_tier = may_move ? std::vector{kNoBlocks, spec::kAllBlocks} : std::vector{spec::kAllBlocks};
    try_fixed(spec::stage_blocks(spec, spec::num_stages(spec)), on_tier, tried);
  }
  return tried.best();
}

}  // namespace braid::plan
