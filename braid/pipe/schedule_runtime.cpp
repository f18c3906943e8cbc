// The interpreter of action tables.
#include "braid/pipe/schedule_runtime.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/op_name.h"
#include "braid/comm/rank_activity.h"
#include "braid/schedule/passes.h"

namespace braid::pipe {
namespace {

constexpr std::string_view kActivations = "activations", kGradients = "gradients";  // of transfers

bool receives(Op op) { return op == Op::RecvForward || op == Op::RecvBackward; }

// Returns the receive of the tensors that a compute action reads.
Action source_of(const Action& action) {
  return {action.op == Op::Forward ? Op::RecvForward : Op::RecvBackward, action.stage, action.micro};
}

}  // namespace

ScheduleRuntime::ScheduleRuntime(const Schedule& schedule, Communicator& pipe, StageExecutor& executor)
    : schedule_(schedule), pipe_(pipe), executor_(executor) {
  check(schedule.num_ranks() == pipe.size(), "a schedule has one program per rank of the pipe axis");
}

std::vector<schedule::Span> ScheduleRuntime::run_step() {
  const Program& program = schedule_.programs[pipe_.rank()];
  comm::RankActivity* const activity = pipe_.activity();
  std::vector<schedule::Span> spans;
  spans.reserve(program.size());
  posted_until_ = 0;
  receives_.clear();  // a failed step leaves some
  sends_.clear();
  while (spans.size() < program.size()) {
    const size_t i = spans.size();
    const bool fused = program[i].fusion == Fusion::WithNext;
    post_receives(program, i);
    const double begin = now_seconds();
    if (activity) activity->begin(words(program[i]));
    if (fused) {
      check(i + 1 < program.size(), "a fused action has a partner");
      execute_fused(program[i], program[i + 1]);
    } else {
      execute(program[i]);
    }
    const double end = now_seconds();
    spans.push_back({program[i], begin, end});
    if (fused) spans.push_back({program[i + 1], begin, end});
  }
  for (Work& send : sends_) send.wait_host();
  sends_.clear();
  return spans;
}

// Returns a text for people, such as "recv activations of microbatch 5 from rank 2 of pipe".
std::string ScheduleRuntime::words(const Action& action) const {
  const std::string of_micro = action.micro < 0 ? "" : cat(" of microbatch ", action.micro);
  if (!communicates(action.op)) return cat(words_of(action.op), of_micro, " on stage ", action.stage);
  return cat(words_of(action.op), of_micro, receives(action.op) ? " from" : " to", " rank ", peer_of(action), " of ",
             pipe_.name());
}

void ScheduleRuntime::execute(const Action& action) {
  require_runnable(action);
  const int stage = action.stage, micro = action.micro;
  switch (action.op) {
    case Op::Forward:
      executor_.forward(stage, micro);
      return hand_over(action);
    case Op::FullBackward:
      executor_.full_backward(stage, micro);
      return hand_over(action);
    case Op::InputGrad:
      executor_.input_grad(stage, micro);
      return hand_over(action);
    case Op::WeightGrad:
      return executor_.weight_grad(stage, micro);
    case Op::ReduceGrad:
      return executor_.reduce_grad(stage);
    case Op::Unshard:
      return executor_.unshard(stage);
    case Op::Reshard:
      return executor_.reshard(stage);
    case Op::Recompute:
      return executor_.recompute(stage, micro);
    case Op::Update:
      return executor_.update(stage, micro);
    case Op::SendForward:
      return post_send(action, executor_.outputs(stage, micro));
    case Op::SendBackward:
      return post_send(action, executor_.input_gradients(stage, micro));
    case Op::RecvForward:
    case Op::RecvBackward:
      return complete_receive(action);
  }
}

// Hands both results over after the pair, because neither exists before.
void ScheduleRuntime::execute_fused(const Action& forward, const Action& backward) {
  const bool pair = forward.op == Op::Forward && (backward.op == Op::FullBackward || backward.op == Op::InputGrad);
  check(pair && forward.micro != backward.micro, "a fused pair is a forward, then a backward of another microbatch");
  require_runnable(forward);
  require_runnable(backward);
  executor_.overlapped(forward, backward);
  hand_over(forward);
  hand_over(backward);
}

// Callers validate schedules. This check keeps an invalid one from reading tensors that have not arrived.
void ScheduleRuntime::require_runnable(const Action& action) const {
  const bool whole_stage = of_whole_stage(action.op);
  check(action.stage >= 0 && action.stage < schedule_.num_stages, "an action's stage is one of the schedule's");
  check(whole_stage || (action.micro >= 0 && action.micro < schedule_.num_microbatches),
        "an action's microbatch is one of the schedule's");
  const bool reads = action.op == Op::Forward || action.op == Op::FullBackward || action.op == Op::InputGrad;
  check(!reads || !receives_.contains(source_of(action)), "a tensor is received before it is read");
}

void ScheduleRuntime::post_receives(const Program& program, size_t from) {
  const size_t until = std::min(program.size(), from + kReceivesAhead + 1);
  for (posted_until_ = std::max(posted_until_, from); posted_until_ < until; ++posted_until_) {
    const Action& action = program[posted_until_];
    if (!receives(action.op)) continue;
    check(!receives_.contains(action), "a tensor is received once");
    receives_[action] = post_receive(action);
  }
}

Work ScheduleRuntime::post_receive(const Action& action) {
  require_runnable(action);
  const auto buffers = action.op == Op::RecvForward ? executor_.input_buffers(action.stage, action.micro)
                                                    : executor_.output_gradient_buffers(action.stage, action.micro);
  const comm::CallName name(action.op == Op::RecvForward ? kActivations : kGradients);
  return pipe_.batch(transfers(P2p::Kind::Recv, action, buffers));
}

void ScheduleRuntime::post_send(const Action& action, const StageExecutor::Tensors& tensors) {
  std::erase_if(sends_,
                [](const Work& sent) { return sent.done(); });  // frees sent tensors now, not at the end of the step
  const comm::CallName name(action.op == Op::SendForward ? kActivations : kGradients);
  sends_.push_back(pipe_.batch(transfers(P2p::Kind::Send, action, tensors)));
}

void ScheduleRuntime::complete_receive(const Action& action) {
  const auto posted = receives_.extract(action);
  check(!posted.empty(), "a receive is posted before the program reaches it");
  Work work = posted.mapped();
  work.order_before(pipe_.queue());
}

// Passes a result on to the neighbouring stage if that is on this rank, because such stages have no transfers.
void ScheduleRuntime::hand_over(const Action& action) {
  const auto [stage, micro] = std::pair(action.stage, action.micro);
  const bool forward = action.op == Op::Forward;
  const int other = stage + (forward ? 1 : -1);
  if (other < 0 || other >= schedule_.num_stages || schedule_.rank_of(other, micro) != pipe_.rank()) return;
  if (!forward && !schedule::passes_gradient(schedule_, stage)) return;
  if (forward) {
    executor_.give_inputs(other, micro, executor_.outputs(stage, micro));
  } else {
    executor_.give_output_gradients(other, micro, executor_.input_gradients(stage, micro));
  }
}

// Returns the other rank of a transfer. Activations go from stage s to s + 1, gradients from s + 1 to s.
int ScheduleRuntime::peer_of(const Action& action) const {
  const bool next = action.op == Op::SendForward || action.op == Op::RecvBackward;
  return schedule_.rank_of(action.stage + (next ? 1 : -1), action.micro);
}

// Returns the transfers of an action. Both sides compute the same tag for a tensor from its place among the tensors,
// the lower stage of the edge, the microbatch and the direction.
std::vector<P2p> ScheduleRuntime::transfers(P2p::Kind kind, const Action& action,
                                            const StageExecutor::Tensors& tensors) const {
  const bool lower_side = action.op == Op::SendForward || action.op == Op::RecvBackward;
  const bool backward = action.op == Op::SendBackward || action.op == Op::RecvBackward;
  const int edge = lower_side ? action.stage : action.stage - 1;
  int tag = (edge * schedule_.num_microbatches + action.micro) * 2 + (backward ? 1 : 0);
  std::vector<P2p> batch;
  for (const at::Tensor& tensor : tensors) {
    batch.push_back({kind, tensor, peer_of(action), tag});
    tag += 2 * schedule_.num_stages * schedule_.num_microbatches;
  }
  return batch;
}

}  // namespace braid::pipe
