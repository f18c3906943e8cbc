// The objective of a training: the tokens that a model predicts.
#pragma once

#include "braid/base/word.h"

namespace braid {

// Auto: that of the model's family. Causal: every token from those before it. Masked: chosen tokens, which the model
// does not see, from all others. Source: Devlin et al., "BERT" (2018), section 3.1.
enum class Objective { Auto, Causal, Masked };
constexpr auto words(Objective) { return std::to_array<std::string_view>({"auto", "causal", "masked"}); }

}  // namespace braid
