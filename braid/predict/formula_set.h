// Whose arithmetic a prediction follows.
#pragma once

#include "braid/spec/word.h"

namespace braid {

// Braid: what braid's own ranks do: attention in one fused pass that skips what a token may not see, gradients that
// leave while backward runs. Megatron: what Megatron-LM did in the papers that measured it: attention with its scores
// in memory (Korthikanti et al. 2022), exchanges between stages that both sides wait for, gradients summed after the
// last backward pass; and its papers' count of operations, with attention in full.
enum class FormulaSet { Braid, Megatron };
constexpr auto words(FormulaSet) { return std::to_array<std::string_view>({"braid", "megatron"}); }

}  // namespace braid
