// The times of transfers between stages follow from the links between their ranks.
#include "braid/plan/pipeline_question.h"

#include <algorithm>

#include "braid/plan/collectives.h"

namespace braid::plan {

double tensor_bytes(const PlannedRun& run) {
  return element_bytes(run.spec.train.dtype) * run.layout.tokens * run.spec.model.width;
}

namespace {

// The time that Megatron-LM's host spends around an exchange before its device computes again: the transfers of Qi et
// al. 2023, table 9, minus their bytes over the link.
constexpr double kMegatronStallSeconds = 3e-4;

// Returns the seconds to send one tensor between stages over `links`. In Megatron-LM each tensor rank sends a part, and
// the parts are gathered within the node (Narayanan et al. 2021, section 4.1). Under sequence parallelism each tensor
// rank needs only its part.
double transfer_seconds(const PlannedRun& run, const GroupLinks& links) {
  const bool megatron = run.formulas == FormulaSet::Megatron, parallel = run.spec.mesh.sequence_parallel;
  const double bytes = tensor_bytes(run);
  const bool in_parts = megatron || parallel;
  const double sent =
      links.send_seconds(in_parts ? bytes / run.layout.tensor : bytes) + (megatron ? kMegatronStallSeconds : 0);
  if (!in_parts || parallel) return sent;
  return sent + GroupLinks(run.cluster, run.layout.tensor_group).all_gather_seconds(bytes);
}

// Returns, for each stage, the seconds to send a tensor to the next stage. Stages on one node use the node's links.
std::vector<double> transfers(const PlannedRun& run, const ScheduleTraits& traits) {
  const RunLayout& layout = run.layout;
  const double within = transfer_seconds(run, {run.cluster, {2, 2}}),
               across = transfer_seconds(run, {run.cluster, {2, 1}});
  const int near = layout.pipe_group.per_node;
  std::vector<double> all(layout.stages.size());
  for (size_t stage = 0; stage + 1 < all.size(); ++stage) {
    const int from = schedule::owner_of_stage(traits.placement, layout.pipe, static_cast<int>(stage));
    const int to = schedule::owner_of_stage(traits.placement, layout.pipe, static_cast<int>(stage) + 1);
    if (from != to) all[stage] = from / near == to / near ? within : across;
  }
  return all;
}

// Returns true if the tensors that ranks receive are counted while the schedule is played, not as the most of any run
// (passed_bytes()). Where activations move, they are much of what a rank holds. Gradients on disk are not played.
bool plays_received(const PlannedRun& run) {
  const bool moves = std::ranges::any_of(run.layout.stages, [](const StageLoad& stage) { return stage.on_tier > 0; });
  if (run.formulas != FormulaSet::Braid || !moves) return false;
  const bool several = run.layout.stages.size() > static_cast<size_t>(run.layout.pipe);
  return run.layout.pipe > 1 && !run.spec.mesh.sequence_parallel &&
         !(several && !is_resident(run.spec.memory.gradients));
}

}  // namespace

PipelineQuestion pipeline_question(const PlannedRun& run, const ScheduleTraits& traits,
                                   const std::vector<StageFacts>& stages) {
  const bool megatron = run.formulas == FormulaSet::Megatron;
  PipelineQuestion question;
  question.schedule = traits.name;
  question.request.ranks = run.layout.pipe;
  question.request.microbatches = run.layout.microbatches;
  question.request.chunks = run.layout.chunks;
  question.request.group = run.spec.pipeline.group;
  const std::vector<double> to_next = transfers(run, traits);
  question.transfer = *std::ranges::max_element(to_next);
  if (plays_received(run)) question.received_bytes = tensor_bytes(run);
  if (const double crowd = ranks_per_core(run); crowd > 1) question.cores = cores_of_replica(run, crowd);
  if (megatron && traits.splits_backward) question.end = schedule::StepEnd::PostValidated;
  for (size_t i = 0; i < stages.size(); ++i) {
    const StagePasses& passes = stages[i].passes;
    // Megatron-LM's ranks compute nothing while they send or receive, as tests/schedule/published_steps_test.cpp shows.
    const double waited = megatron ? to_next[i] + (i > 0 ? to_next[i - 1] : 0) : 0;
    question.stages.push_back(
        {passes.forward.total() + waited, passes.input_grad.total() + waited, passes.weight_grad.total()});
    question.held.push_back(stages[i].held);
    question.backwards.push_back(run.layout.stages[i].backward);
  }
  return question;
}

}  // namespace braid::plan
