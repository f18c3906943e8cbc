#include "braid/module/pipeline_checks.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/module_store.h"
#include "braid/module/refused_options.h"
#include "braid/schedule/validate.h"

namespace braid::modules {
namespace {

void append(std::vector<Problem>& problems, std::vector<Problem> more) {
  for (Problem& problem : more) problems.push_back(std::move(problem));
}

std::vector<Problem> faults_of(const Schedule& schedule, int num_ranks) {
  std::vector<Problem> problems;
  if (schedule.num_ranks() != num_ranks) {
    problems.push_back(
        {"schedule", cat(schedule.num_ranks(), " ranks"), "must have a program per rank of the pipe", cat(num_ranks)});
  }
  const auto faults = schedule::validate(schedule, schedule::SendMode::Buffered);
  if (!faults.empty()) {
    problems.push_back(
        {"schedule", schedule.name, cat("must be able to run:\n", schedule::print(schedule, faults)), ""});
  }
  return problems;
}

// Returns the problems of all ranks of the pipe. The result is the same on each rank.
std::vector<Problem> all_storage_problems(const LayerList& layers, const std::vector<StagePlan>& plan,
                                          const Schedule& schedule) {
  std::vector<Problem> problems;
  std::vector<std::vector<int>> layers_of_rank(static_cast<size_t>(schedule.num_ranks()));
  for (size_t stage = 0; stage < plan.size(); ++stage) {
    auto& own = layers_of_rank.at(static_cast<size_t>(schedule.stage_rank[stage]));
    for (int index = plan[stage].first; index < plan[stage].last; ++index) own.push_back(index);
  }
  for (const auto& own : layers_of_rank) append(problems, storage_problems(layers.subset(own)));
  return problems;
}

}  // namespace

std::vector<StagePlan> checked_plan(const LayerList& layers, const Schedule& schedule,
                                    const ModulePipeline::Options& options, Communicator& pipe) {
  std::vector<Problem> problems = refused_of_pipeline(schedule, {options.sync, {}, options.memory}, options.data);
  append(problems, faults_of(schedule, pipe.size()));
  const int replicas = options.data ? options.data->size() : 1;
  if (options.world && options.world->size() != pipe.size() * replicas) {
    problems.push_back({"world", cat(options.world->size(), " ranks"), "must be all ranks of `pipe` and `data`",
                        cat(pipe.size() * replicas)});
  }
  auto plan = plan_stages(layers, schedule.num_stages, options.balance, problems);
  append(problems, sharing_problems(layers, plan, schedule, pipe.rank_kind()));
  if (options.data || options.memory.has_disk()) append(problems, all_storage_problems(layers, plan, schedule));
  if (!problems.empty()) throw ConfigError(std::move(problems));
  pipe.barrier().wait_host();
  return plan;
}

}  // namespace braid::modules
