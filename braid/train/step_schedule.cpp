// Makes the schedule of a step. Translates the names in a schedule request into keys of the configuration.
#include "braid/train/step_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/validate.h"
#include "braid/spec/activation_blocks.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/combine.h"
#include "braid/spec/fields.h"
#include "braid/spec/partition.h"
#include "braid/spec/problems.h"
#include "braid/spec/recompute.h"
#include "braid/spec/run_spec.h"
#include "braid/spec/trained.h"
#include "braid/train/stage_layout.h"

namespace braid::train {
namespace {

constexpr const char* kBatch = "train.batch";

// The fields of a schedule request, and the configuration keys that set them.
const std::map<std::string_view, const char*> kKeys = {{"schedule", "pipeline.schedule"},
                                                       {"ranks", "mesh.pipe"},
                                                       {"chunks", "pipeline.chunks"},
                                                       {"group", "pipeline.group"},
                                                       {"microbatches", kBatch}};

// Translates a problem of a request's field into the key and values of the configuration. A nearest number of
// microbatches becomes the batch that gives this number to a data rank that has `count` now, or "" if there is none.
Problem in_keys_of_spec(Problem problem, const RunSpec& spec, int count) {
  if (const auto known = kKeys.find(problem.key); known != kKeys.end()) problem.key = known->second;
  if (problem.key == kBatch) {
    problem.value = cat(spec.train.batch);
    problem.rule = cat("makes ", counted(count, "microbatch"), " per rank, which ", problem.rule);
    if (problem.nearest.empty()) return problem;
    const int64_t batch = int64_t{std::stoi(problem.nearest)} * spec.train.batch;
    problem.nearest = batch % (count * spec::batch_unit(spec)) == 0 ? cat(batch / count) : "";
  }
  return problem;
}

Schedule requested(const RunSpec& spec, int count) {
  const ScheduleRequest request{spec.mesh.pipe, count, spec.pipeline.chunks, spec.pipeline.group};
  const std::string& schedule = spec.pipeline.schedule;
  const std::string path = spec::schedule_file(spec.pipeline);
  try {
    if (path.empty()) return make_schedule(schedule, request);
    if (path_kind(path) == PathKind::Other) {
      throw ConfigError(
          {{"pipeline.schedule", spec::toml_text(schedule), "must name a regular file: every rank reads it", ""}});
    }
    return schedule_from_table(named_file_content({"pipeline.schedule", schedule, path}), schedule, request);
  } catch (const ConfigError& error) {
    std::vector<Problem> problems;
    for (const Problem& problem : error.problems()) problems.push_back(in_keys_of_spec(problem, spec, count));
    throw ConfigError(std::move(problems));
  }
}

// Returns the refused combinations of features. The name of a schedule table does not show its features, so they are
// checked once the table is read.
std::vector<Problem> refused_pairs_of_table(const RunSpec& spec, const Schedule& schedule) {
  std::vector<spec::Feature> on = spec::features(spec);
  for (const spec::Feature feature : spec::features_of(schedule)) on.push_back(feature);
  return spec::refused_pairs(on, spec);
}

// Refuses a wrong number of entries in memory.recompute and memory.activation_blocks, and recomputed blocks that stages
// do not have. The number of stages may be known only from a schedule's file.
void refuse_other_stages(const RunSpec& spec, int num_stages) {
  const size_t entries = spec::recompute_entries(spec.memory).size();
  const bool is_cut = spec::known_stage_units(spec, num_stages).has_value();
  const auto blocks = is_cut ? spec::stage_blocks(spec, num_stages) : std::vector<int>(num_stages, spec.model.layers);
  const auto refuse = [&](std::string rule) {
    throw ConfigError({{"memory.recompute", spec::toml_text(spec.memory.recompute), std::move(rule),
                        spec::toml_text(spec::nearest_recompute(spec.memory, blocks))}});
  };
  if (entries != 1 && static_cast<int>(entries) != num_stages) {
    refuse(cat("must have one entry for all stages or one for each of ", num_stages));
  }
  if (const std::string missing = spec::missing_blocks(spec.memory, blocks); !missing.empty()) {
    refuse(cat("must list blocks that stages have, from 0, not ", missing));
  }
  if (std::string rule = spec::activation_blocks_fault(spec.memory, num_stages); !rule.empty()) {
    throw ConfigError({{"memory.activation_blocks", spec::toml_text(spec.memory.activation_blocks), std::move(rule),
                        spec::toml_text(spec::kAllBlocks)}});
  }
}

// Returns true if the last block of a stage is recomputed.
bool recomputes_last(const RunSpec& spec, int stage, int num_stages) {
  using enum spec::Recompute::Keeps;
  const spec::Recompute policy = spec::stage_recompute(spec.memory, stage);
  return policy.keeps == SegmentInputs ||
         (policy.keeps == Listed && policy.listed.back().end == spec::stage_blocks(spec, num_stages)[stage]);
}

// Returns the stages that may recompute their last blocks while their gradient travels. No gradient travels to the last
// stage.
std::vector<int> stages_run_ahead(const RunSpec& spec, int num_stages) {
  std::vector<int> stages;
  for (int stage = 0; stage + 1 < num_stages; ++stage) {
    if (recomputes_last(spec, stage, num_stages)) stages.push_back(stage);
  }
  return stages;
}

bool runs_ahead_already(const Schedule& schedule) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [](const Program& program) {
    return std::any_of(program.begin(), program.end(), [](const Action& a) { return a.op == Op::Recompute; });
  });
}

// Returns the schedule of a data rank with `count` microbatches.
Schedule schedule_of(const RunSpec& spec, int count) {
  const bool gathers_stages = spec::num_shards(spec) > 1 && spec.sync.zero == 3 &&
                              spec.sync.zero_gather == GatherUnit::Stage && is_resident(spec.memory.parameters);
  const Schedule whole = requested(spec, count);
  // The stages of a partition that is to be measured are not known. What is asked of its schedule is where they are.
  const std::vector<StageBackward> backwards =
      spec::is_measured(spec.pipeline) ? std::vector<StageBackward>() : spec::stage_backwards(spec, whole.num_stages);
  const Schedule asked = schedule::with_backwards(whole, backwards);
  const Schedule schedule =
      schedule::with_comms(schedule::with_grad_sync(gathers_stages ? schedule::with_unshard(asked) : asked));
  refuse_other_stages(spec, schedule.num_stages);
  if (runs_ahead_already(schedule)) return schedule;
  return schedule::with_recompute(schedule, stages_run_ahead(spec, schedule.num_stages));
}

void refuse_faulty_schedule_of(const RunSpec& spec, int count) {
  const Schedule schedule = schedule_of(spec, count);
  std::vector<Problem> problems;
  const auto refuse = [&](std::string rule) {
    problems.push_back({"pipeline.schedule", spec.pipeline.schedule, std::move(rule), ""});
  };
  const std::vector<schedule::Fault> faults = schedule::validate(schedule, schedule::SendMode::Buffered);
  if (!faults.empty()) refuse(cat("cannot run:\n", schedule::print(schedule, faults)));
  for (const std::string& fault : layout_faults(schedule)) refuse("cannot run: " + fault);
  if (problems.empty() && StageLayout(schedule).mirrored() && spec::replicas_run_apart(spec)) {
    refuse(
        cat("has each stage on two ranks, so it cannot run with sync.consistency = \"", spec.sync.consistency, "\""));
  }
  if (!spec::schedule_file(spec.pipeline).empty()) {
    for (Problem& problem : refused_pairs_of_table(spec, schedule)) problems.push_back(std::move(problem));
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace

Schedule step_schedule(const RunSpec& spec, int data_rank) {
  return schedule_of(spec, spec::num_microbatches(spec, data_rank));
}

Schedule step_schedule(const RunSpec& spec) { return step_schedule(spec, spec::busiest_data_rank(spec)); }

Schedule schedule_table(const RunSpec& spec) {
  return requested(spec, spec::num_microbatches(spec, spec::busiest_data_rank(spec)));
}

schedule::VersionPlan version_plan(const RunSpec& spec, const Schedule& schedule) {
  if (spec.pipeline.weights == StageWeights::Vertical) return {schedule, schedule::VersionRule::Vertical};
  const ScheduleTraits* traits = spec::traits_of(spec.pipeline);
  return {schedule, traits ? traits->versions.value_or(schedule::VersionRule::Own) : schedule::VersionRule::Own};
}

void refuse_faulty_schedule(const RunSpec& spec) {
  const std::vector<int> first = spec::first_microbatches(spec);
  std::set<int> counts;
  for (size_t rank = 0; rank + 1 < first.size(); ++rank) counts.insert(first[rank + 1] - first[rank]);
  for (const int count : counts) refuse_faulty_schedule_of(spec, count);
}

}  // namespace braid::train
