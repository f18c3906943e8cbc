// Simulates a schedule, or estimates the result by its closed form.
#include "braid/plan/pipeline_outcome.h"

#include <algorithm>
#include <utility>

#include "braid/schedule/passes.h"
#include "braid/schedule/simulate.h"

namespace braid::plan {
namespace {

// Returns the most bytes that a rank holds at a time while its program runs in order. `held` is by stage.
double most_held(const Program& program, const std::vector<HeldBytes>& held) {
  double now = 0, most = 0;
  for (const Action& action : program) {
    const HeldBytes& stage = held[action.stage];
    const double before = now;
    switch (action.op) {
      case Op::Forward:
        now += stage.activation;
        break;
      case Op::FullBackward:
        now -= stage.activation;
        break;
      case Op::InputGrad:
        now += stage.pending - stage.activation;
        break;
      case Op::WeightGrad:
        now -= stage.pending;
        break;
      default:
        break;
    }
    // A forward ends with what it keeps and has its working memory then. A backward begins with that.
    const double working = action.op == Op::WeightGrad ? stage.weight_working : stage.working;
    most = std::max({most, now, (action.op == Op::Forward ? now : before) + working});
  }
  return most;
}

// Returns the request with the mean times and sizes of the stages, which searched schedules read.
ScheduleRequest filled(const PipelineQuestion& question) {
  ScheduleRequest request = question.request;
  const auto count = static_cast<double>(question.stages.size());
  request.forward = request.input_grad = request.weight_grad = request.activation = request.pending = 0;
  for (size_t i = 0; i < question.stages.size(); ++i) {
    request.forward += question.stages[i].forward / count;
    request.input_grad += question.stages[i].input_grad / count;
    request.weight_grad += question.stages[i].weight_grad / count;
    request.activation += question.held[i].activation / count;
    request.pending += question.held[i].pending / count;
  }
  // Recomputed inputs of products are held only for the weight pass, so `pending` can exceed `activation`.
  request.pending = std::min(request.pending, request.activation);
  request.transfer = question.transfer;
  return request;
}

// Simulates the schedule. Spans of transfers, which take memory and change no other span, are there if they are kept.
schedule::Timeline simulated(const PipelineQuestion& question, const Schedule& schedule) {
  schedule::CostModel cost;
  cost.transfer = question.transfer;
  cost.stages = question.stages;
  if (question.cores > 0) return schedule::simulate_sharing(schedule, cost, question.cores);
  const bool shows_transfers = question.kept == KeptOutcome::Timeline && question.transfer > 0;
  return schedule::simulate(shows_transfers ? schedule::with_comms(schedule) : schedule, cost);
}

PipelineOutcome played_outcome(const PipelineQuestion& question, const Schedule& schedule) {
  schedule::Timeline timeline = simulated(question, schedule);
  PipelineOutcome outcome{timeline.makespan(), timeline.busiest(), {}, {}};
  if (question.end == schedule::StepEnd::PostValidated) {
    outcome.seconds = 0;
    for (const auto& spans : timeline.ranks) {
      outcome.seconds = std::max(outcome.seconds, spans.back().end - spans.front().begin);
    }
  }
  for (const Program& program : schedule.programs) outcome.held_bytes.push_back(most_held(program, question.held));
  if (question.kept == KeptOutcome::Timeline) outcome.timeline = std::move(timeline);
  return outcome;
}

PipelineOutcome estimated_outcome(const PipelineQuestion& question, const ScheduleTraits& traits) {
  const schedule::StepSums sums({.ranks = question.request.ranks,
                                 .microbatches = question.request.microbatches,
                                 .group = question.request.group,
                                 .placement = traits.placement,
                                 .stages = question.stages,
                                 .transfer = question.transfer,
                                 .end = question.end});
  const double all = static_cast<double>(sums.m) * sums.v;
  PipelineOutcome outcome{traits.form->seconds(sums), sums.m * sums.busiest, std::vector<double>(sums.p), {}};
  std::vector<double> working(sums.p);
  for (size_t i = 0; i < question.held.size(); ++i) {
    const int rank = schedule::owner_of_stage(traits.placement, sums.p, static_cast<int>(i));
    schedule::UnderWay count = traits.form->under_way(sums, rank);
    count.activations = std::min(count.activations, all);
    count.pending = std::min(count.pending, all - count.activations);
    count.either = std::min(count.either, all);
    const HeldBytes& held = question.held[i];
    outcome.held_bytes[rank] += (count.activations * held.activation + count.pending * held.pending +
                                 count.either * std::max(held.activation, held.pending)) /
                                sums.v;
    working[rank] = std::max(working[rank], held.working);
  }
  for (int rank = 0; rank < sums.p; ++rank) outcome.held_bytes[rank] += working[rank];
  return outcome;
}

// Returns the outcome if ranks share cores, given the closed form's outcome with one core for each rank.
PipelineOutcome shared(PipelineOutcome outcome, const PipelineQuestion& question) {
  double all = 0;
  for (const schedule::StageTimes& stage : question.stages) all += stage.forward + stage.input_grad + stage.weight_grad;
  outcome.seconds = std::max(outcome.seconds, question.request.microbatches * all / question.cores);
  outcome.busiest_seconds =
      std::min(outcome.seconds, outcome.busiest_seconds * std::max(1.0, question.request.ranks / question.cores));
  return outcome;
}

}  // namespace

PipelineOutcome pipeline_outcome(const PipelineQuestion& question, PipelineDetail detail) {
  if (question.table) return played_outcome(question, *question.table);
  const ScheduleTraits& traits = *find_schedule(question.schedule);
  const int64_t actions = int64_t{3} * static_cast<int64_t>(question.stages.size()) * question.request.microbatches;
  if (detail == PipelineDetail::Estimated || actions > kMostActions) {
    const PipelineOutcome outcome = estimated_outcome(question, traits);
    return question.cores > 0 ? shared(outcome, question) : outcome;
  }
  const Schedule whole = make_schedule(question.schedule, filled(question));
  return played_outcome(question, schedule::with_backwards(whole, question.backwards));
}

}  // namespace braid::plan
