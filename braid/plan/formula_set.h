// The system whose formulas a prediction follows.
#pragma once

#include "braid/spec/model_shape.h"
#include "braid/spec/word.h"

namespace braid::plan {

using braid::operator<<;  // enums as their words

// Braid: braid's own ranks: attention in one fused pass that skips what a token may not see, gradients that leave while
// backward runs. Megatron: Megatron-LM as the papers measured it: attention of GPT models with its scores in memory
// (Korthikanti et al. 2022), exchanges between stages that both sides wait for, gradients summed after the last
// backward pass; and its papers' count of operations, with attention in full. Torchtitan: torchtitan of December 2024
// (Liang et al., arXiv 2410.06511): FSDP2 with eager kernels, with blocks compiled, and with asynchronous tensor
// parallelism as well (torchtitan.h).
enum class FormulaSet { Braid, Megatron, Torchtitan, TorchtitanCompiled, TorchtitanAsyncTensor };
constexpr auto words(FormulaSet) {
  return std::to_array<std::string_view>(
      {"braid", "megatron", "torchtitan", "torchtitan-compiled", "torchtitan-async-tp"});
}

// Returns true if attention's scores are in memory: in GPT models under Megatron-LM, as in its papers. Its Llama models
// have fused attention (--use-flash-attn).
inline bool stores_scores(FormulaSet formulas, const ModelSpec& model) {
  return formulas == FormulaSet::Megatron && spec::traits_of(model.family).positions != spec::PositionKind::Rotary;
}

constexpr bool is_torchtitan(FormulaSet formulas) { return formulas >= FormulaSet::Torchtitan; }
constexpr bool is_compiled(FormulaSet formulas) { return formulas > FormulaSet::Torchtitan; }

}  // namespace braid::plan
