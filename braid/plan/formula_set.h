// The system whose formulas a prediction follows.
#pragma once

#include "braid/base/word.h"
#include "braid/model/families.h"

namespace braid::plan {

using braid::operator<<;  // writes enums as their words

// The systems:
//
//   Braid        braid's own ranks. Attention is one fused kernel that skips masked tokens. Gradients are
//                reduced while backward runs.
//   Megatron     Megatron-LM as its papers measured it. Attention of GPT models stores its scores (Korthikanti et al.
//                2022). Sender and receiver wait for transfers between stages. Gradients are reduced after the last
//                backward. Operations are counted as in the papers, with attention over the whole sequence.
//   Torchtitan   torchtitan of December 2024 (Liang et al., arXiv 2410.06511): FSDP2 with eager kernels (torchtitan.h).
//                TorchtitanCompiled adds compiled blocks. TorchtitanAsyncTensor adds those and asynchronous tensor
//                parallelism.
enum class FormulaSet { Braid, Megatron, Torchtitan, TorchtitanCompiled, TorchtitanAsyncTensor };
constexpr auto words(FormulaSet) {
  return std::to_array<std::string_view>(
      {"braid", "megatron", "torchtitan", "torchtitan-compiled", "torchtitan-async-tp"});
}

// Returns true if attention stores its scores in memory, as GPT models do under Megatron-LM in its papers. Llama models
// have fused attention there (--use-flash-attn).
inline bool stores_scores(FormulaSet formulas, const ModelSpec& model) {
  return formulas == FormulaSet::Megatron && model::family_of(model).traits.positions != model::PositionKind::Rotary;
}

constexpr bool is_torchtitan(FormulaSet formulas) { return formulas >= FormulaSet::Torchtitan; }
constexpr bool is_compiled(FormulaSet formulas) { return formulas > FormulaSet::Torchtitan; }

}  // namespace braid::plan
