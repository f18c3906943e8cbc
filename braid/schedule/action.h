// One thing one rank does in a step. The text form is PyTorch's: stage, op, microbatch.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace braid {

enum class Op {
  Forward,       // 0F0
  FullBackward,  // 0B0   input and weight gradients together
  InputGrad,     // 0I0
  WeightGrad,    // 0W0
  SendForward,   // 0SEND_F0   stage 0 sends its output
  RecvForward,   // 1RECV_F0   stage 1 receives its input
  SendBackward,  // 1SEND_B0   stage 1 sends the gradient of its input
  RecvBackward,  // 0RECV_B0   stage 0 receives the gradient of its output
  ReduceGrad,    // 0REDUCE_GRAD   the stage's gradients are complete; micro is -1
};

struct Action {
  Op op = Op::Forward;
  int stage = 0;
  int micro = 0;  // -1 for ops of a whole stage
  auto operator<=>(const Action&) const = default;
};

std::string text(Op op);
std::string text(const Action& action);

// Reads the text form. Throws ConfigError naming what it could not read.
Action parse_action(std::string_view word);

}  // namespace braid
