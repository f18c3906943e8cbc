// The interpreter of action tables.
#include "braid/pipe/schedule_runtime.h"

#include <algorithm>

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
  const auto [op, stage, micro] = action;
  switch (op) {
    case Op::Forward:
      return executor_.forward(stage, micro);
    case Op::FullBackward:
      return executor_.full_backward(stage, micro);
    case Op::InputGrad:
      return executor_.input_grad(stage, micro);
    case Op::WeightGrad:
      return executor_.weight_grad(stage, micro);
    case Op::ReduceGrad:
      return executor_.reduce_grad(stage);
    case Op::SendForward:
      return post_send(action, executor_.output(stage, micro), peer_of(action));
    case Op::SendBackward:
      return post_send(action, executor_.input_gradient(stage, micro), peer_of(action));
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
    const P2p receive{P2p::Kind::Recv,
                      action.op == Op::RecvForward ? executor_.input_buffer(action.stage, action.micro)
                                                   : executor_.output_gradient_buffer(action.stage, action.micro),
                      peer_of(action), tag_of(action)};
    receives_[action] = pipe_.batch({&receive, 1});
  }
}

void ScheduleRuntime::post_send(const Action& action, at::Tensor tensor, int peer) {
  const P2p send{P2p::Kind::Send, std::move(tensor), peer, tag_of(action)};
  sends_.push_back(pipe_.batch({&send, 1}));
}

void ScheduleRuntime::complete_receive(const Action& action) {
  const auto posted = receives_.extract(action);
  check(!posted.empty(), "a receive is posted before the program reaches it");
  Work work = posted.mapped();
  work.order_before(pipe_.queue());
}

// Activations travel from stage s to s + 1, gradients from s + 1 to s.
int ScheduleRuntime::peer_of(const Action& action) const {
  const bool next = action.op == Op::SendForward || action.op == Op::RecvBackward;
  return schedule_.rank_of(action.stage + (next ? 1 : -1), action.micro);
}

// The same number on both sides: (lower stage of the edge, microbatch, direction).
int ScheduleRuntime::tag_of(const Action& action) const {
  const bool lower_side = action.op == Op::SendForward || action.op == Op::RecvBackward;
  const bool backward = action.op == Op::SendBackward || action.op == Op::RecvBackward;
  const int edge = lower_side ? action.stage : action.stage - 1;
  return (edge * schedule_.num_microbatches + action.micro) * 2 + (backward ? 1 : 0);
}

}  // namespace braid
