// The interpreter of action tables.
#include "braid/pipe/schedule_runtime.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"

namespace braid {
namespace {

bool receives(Op op) { return op == Op::RecvForward || op == Op::RecvBackward; }

}  // namespace

ScheduleRuntime::ScheduleRuntime(const Schedule& schedule, Communicator& pipe, StageExecutor& executor)
    : schedule_(schedule), pipe_(pipe), executor_(executor) {
  check(schedule.num_ranks() == pipe.size(), "a schedule has one program per rank of the pipe axis");
}

std::vector<Span> ScheduleRuntime::run_step() {
  const Program& program = schedule_.programs[pipe_.rank()];
  std::vector<Span> spans;
  spans.reserve(program.size());
  posted_until_ = 0;
  for (size_t i = 0; i < program.size(); ++i) {
    post_receives(program, i);
    const double begin = now_seconds();
    execute(program[i]);
    spans.push_back({program[i], begin, now_seconds()});
  }
  for (Work& send : sends_) send.wait_host();
  sends_.clear();
  return spans;
}

void ScheduleRuntime::execute(const Action& action) {
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

void ScheduleRuntime::post_receives(const Program& program, size_t from) {
  const size_t until = std::min(program.size(), from + kReceivesAhead + 1);
  for (posted_until_ = std::max(posted_until_, from); posted_until_ < until; ++posted_until_) {
    const Action& action = program[posted_until_];
    if (!receives(action.op)) continue;
    const auto buffers = action.op == Op::RecvForward ? executor_.input_buffers(action.stage, action.micro)
                                                      : executor_.output_gradient_buffers(action.stage, action.micro);
    receives_[action] = pipe_.batch(transfers(P2p::Kind::Recv, action, buffers));
  }
}

void ScheduleRuntime::post_send(const Action& action, const StageExecutor::Tensors& tensors) {
  sends_.push_back(pipe_.batch(transfers(P2p::Kind::Send, action, tensors)));
}

void ScheduleRuntime::complete_receive(const Action& action) {
  const auto posted = receives_.extract(action);
  check(!posted.empty(), "a receive is posted before the program reaches it");
  Work work = posted.mapped();
  work.order_before(pipe_.queue());
}

// Neighbouring stages on one rank have no transfers: the tensors change hands at once.
void ScheduleRuntime::hand_over(const Action& action) {
  const auto [stage, micro] = std::pair(action.stage, action.micro);
  const bool forward = action.op == Op::Forward;
  const int other = stage + (forward ? 1 : -1);
  if (other < 0 || other >= schedule_.num_stages || schedule_.rank_of(other, micro) != pipe_.rank()) return;
  if (forward) {
    executor_.give_inputs(other, micro, executor_.outputs(stage, micro));
  } else {
    executor_.give_output_gradients(other, micro, executor_.input_gradients(stage, micro));
  }
}

// Activations travel from stage s to s + 1, gradients from s + 1 to s.
int ScheduleRuntime::peer_of(const Action& action) const {
  const bool next = action.op == Op::SendForward || action.op == Op::RecvBackward;
  return schedule_.rank_of(action.stage + (next ? 1 : -1), action.micro);
}

// Tags are the same number on both sides: (place among the tensors, lower stage of the edge, microbatch, direction).
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

}  // namespace braid
