// Simulates a schedule, or estimates the result by its closed form.
#include "braid/plan/pipeline_outcome.h"

#include <algorithm>
#include <set>
#include <utility>

#include "braid/schedule/passes.h"
#include "braid/schedule/simulate.h"

namespace braid::plan {
namespace {

constexpr size_t kReceivesAhead = 4;  // actions, as in pipe/schedule_runtime.h

// Tensors that a rank receives from other ranks, from when their receive is posted until a pass has used them.
class ReceivedTensors {
 public:
  explicit ReceivedTensors(const Program& program) : program_(program) {}

  // Moves to the action at `place`, and returns the number of tensors while it runs.
  double advance_to(size_t place) {
    if (place > 0) free_inputs_of(program_[place - 1]);
    for (; posted_ < std::min(program_.size(), place + kReceivesAhead + 1); ++posted_) {
      const Action& action = program_[posted_];
      if (action.op == Op::RecvForward || action.op == Op::RecvBackward) waiting_.insert(action);
    }
    return static_cast<double>(waiting_.size());
  }
  // Returns true if the pass reads a tensor from another rank.
  bool holds_input_of(const Action& pass) const {
    return waiting_.contains({pass.op == Op::Forward ? Op::RecvForward : Op::RecvBackward, pass.stage, pass.micro});
  }

 private:
  void free_inputs_of(const Action& action) {
    if (action.op == Op::Forward) waiting_.erase({Op::RecvForward, action.stage, action.micro});
    if (goes_back(action.op)) waiting_.erase({Op::RecvBackward, action.stage, action.micro});
  }

  const Program& program_;
  size_t posted_ = 0;
  std::set<Action> waiting_;
};

// The most bytes that a rank holds at a time.
struct MostHeld {
  double activations = 0;
  double with_received = 0;  // of both together
};

// Returns the bytes that a pass of the stage leaves in addition to those before it.
double left_by(Op op, const HeldBytes& stage) {
  switch (op) {
    case Op::Forward:
      return stage.activation;
    case Op::FullBackward:
      return -stage.activation;
    case Op::InputGrad:
      return stage.pending - stage.activation;
    case Op::WeightGrad:
      return -stage.pending;
    default:
      return 0;
  }
}

// Returns the most that a rank holds while its program runs in order. `sent`: tensors that wait until another rank has
// received them.
MostHeld most_held(const Program& program, const PipelineQuestion& question, int sent) {
  double now = 0, copies = 0;
  MostHeld all;
  ReceivedTensors received(program);
  for (size_t place = 0; place < program.size(); ++place) {
    const Action& action = program[place];
    double tensors = received.advance_to(place) + sent;
    if (communicates(action.op)) continue;
    const HeldBytes& stage = question.held[action.stage];
    const bool is_received = received.holds_input_of(action), is_last = action.stage + 1 == std::ssize(question.held);
    if (goes_back(action.op) && !is_received && !is_last) ++tensors;  // a gradient from another stage of the rank
    const double before = std::exchange(now, now + left_by(action.op, stage));
    // A forward ends with what it keeps and has its working memory then. A backward begins with that.
    double most = std::max(now, before + (action.op == Op::WeightGrad ? stage.weight_working : stage.working));
    if (action.op == Op::Forward) {
      const double own = is_received ? question.received_bytes : 0;  // counted among the tensors
      most = std::max(now + stage.forward_working, before + stage.beside_copies - own + copies);
    }
    if (action.op != Op::WeightGrad) copies = action.op == Op::Forward ? stage.copies_left : 0;
    all.activations = std::max(all.activations, most);
    all.with_received = std::max(all.with_received, most + tensors * question.received_bytes);
  }
  return all;
}

// Returns the bytes that the backwards of a program find in memory. Weight-gradient passes move nothing.
double found_in_memory(const Program& program, const std::vector<HeldBytes>& held) {
  double found = 0;
  const Action* before = nullptr;
  for (const Action& action : program) {
    if (action.op == Op::WeightGrad || communicates(action.op)) continue;
    const bool at_once = before && before->op == Op::Forward && before->stage == action.stage &&
                         before->micro == action.micro && goes_back(action.op);
    if (at_once) found += held[action.stage].last_moved;
    before = &action;
  }
  return found;
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
  PipelineOutcome outcome{timeline.makespan(), timeline.busiest(), {}, {}, {}, {}};
  if (question.end == schedule::StepEnd::PostValidated) {
    outcome.seconds = 0;
    for (const auto& spans : timeline.ranks) {
      outcome.seconds = std::max(outcome.seconds, spans.back().end - spans.front().begin);
    }
  }
  // Between two ranks with a stage each and whole backwards, the receiver of a tensor waits for it.
  const auto is_weight_grad = [](const Action& action) { return action.op == Op::WeightGrad; };
  const bool waits = schedule.num_stages == 2 && std::ranges::none_of(schedule.programs.front(), is_weight_grad);
  const int sent = waits ? 0 : 1;
  const Schedule played = question.received_bytes > 0 ? schedule::with_comms(schedule) : schedule;
  for (const Program& program : played.programs) {
    const MostHeld most = most_held(program, question, sent);
    outcome.held_bytes.push_back(most.activations);
    outcome.received_bytes.push_back(most.with_received - most.activations);
    outcome.found_bytes.push_back(found_in_memory(program, question.held));
  }
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
  const std::vector<double> zeros(sums.p);
  PipelineOutcome outcome{traits.form->seconds(sums), sums.m * sums.busiest, zeros, {}, zeros, {}};
  std::vector<double> working(sums.p);
  for (size_t i = 0; i < question.held.size(); ++i) {
    const int rank = schedule::owner_of_stage(traits.placement, sums.p, static_cast<int>(i));
    schedule::UnderWay count = traits.form->under_way(sums, rank);
    // With one microbatch under way in the last stage, each backward follows its forward.
    if (i + 1 == question.held.size() && count.activations <= 1) {
      outcome.found_bytes[rank] = sums.m * question.held[i].last_moved;
    }
    count.activations = std::min(count.activations, all);
    count.pending = std::min(count.pending, all - count.activations);
    count.either = std::min(count.either, all);
    const HeldBytes& held = question.held[i];
    outcome.held_bytes[rank] += (count.activations * held.activation + count.pending * held.pending +
                                 count.either * std::max(held.activation, held.pending)) /
                                sums.v;
    working[rank] = std::max({working[rank], held.working, held.forward_working});
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
