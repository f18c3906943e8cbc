// An action: one thing that one rank does in a step. The text form is PyTorch's: stage, op, microbatch.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

enum class Op : uint8_t {
  Forward,       // 0F0
  FullBackward,  // 0B0   input and weight gradients together
  InputGrad,     // 0I0
  WeightGrad,    // 0W0
  SendForward,   // 0SEND_F0   stage 0 sends its output
  RecvForward,   // 1RECV_F0   stage 1 receives its input
  SendBackward,  // 1SEND_B0   stage 1 sends the gradient of its input
  RecvBackward,  // 0RECV_B0   stage 0 receives the gradient of its output
  ReduceGrad,    // 0REDUCE_GRAD   the stage's gradients are complete; micro is -1
  Unshard,       // 0UNSHARD   the stage's parameters are gathered; micro is -1
  Reshard,       // 0RESHARD   the stage's parameters are freed; micro is -1
  Recompute,     // 0RECOMPUTE0   activations that were dropped after F are recomputed, before B or I
  Update,        // 0UPDATE0   the stage's optimizer step; the last gradient that it includes is microbatch 0's
};

inline constexpr int kNumOps = static_cast<int>(Op::Update) + 1;

// WithNext: this action and the next one of its program form a fused pair, (0F7;7B3)OVERLAP_F_B in the text form. A
// fused pair is always F, then B or I of another microbatch. It starts when both may start, and both end together.
enum class Fusion : uint8_t { None, WithNext };

// One action takes eight bytes. A schedule may have hundreds of millions, and reading them dominates its simulation.
struct Action {
  static constexpr int kMostStages = 1 << 23, kMostMicrobatches = 1 << 30;

  constexpr Action() = default;
  constexpr Action(Op op, int stage = 0, int micro = 0, Fusion fusion = Fusion::None)
      : op(op), stage(stage), micro(micro), fusion(fusion) {}

  Op op : 8 = Op::Forward;
  int stage : 24 = 0;
  int micro : 31 = 0;  // -1 for ops of a whole stage
  Fusion fusion : 1 = Fusion::None;
  auto operator<=>(const Action&) const = default;
};
static_assert(sizeof(Action) == 8);

// Returns true for the sends and receives between stages.
inline bool communicates(Op op) { return op >= Op::SendForward && op <= Op::RecvBackward; }

// Returns true for the passes that compute an input gradient.
inline bool goes_back(Op op) { return op == Op::FullBackward || op == Op::InputGrad; }

// Returns true if the two actions form a fused pair: a forward with the mark, then B or I. Any other mark has no effect
// and is a fault (validate.h).
inline bool fused(const Action& first, const Action& second) {
  return first.fusion == Fusion::WithNext && first.op == Op::Forward && goes_back(second.op);
}

bool of_whole_stage(Op op);  // REDUCE_GRAD, UNSHARD, RESHARD

std::string text(Op op);
std::string_view words_of(Op op);                            // a description: "input gradient", "send activations"
std::string text(const Action& action);                      // the text form without fusion (program_text.h)
void append_text(std::string& words, const Action& action);  // appends text(action) to `words`

// Parses the text form. Throws ConfigError naming the invalid part.
Action parse_action(std::string_view word);

}  // namespace braid
