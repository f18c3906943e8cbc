// The rules of the objective, which the model's family decides.
#include "braid/base/text.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/masking.h"

namespace braid::spec {
namespace {

constexpr int kLeastContext = 4;  // [CLS], two tokens of text, [SEP]

// Returns "when model.family is "gpt2", whose objective is causal".
std::string of_family(const View& at) {
  const ModelFamily family = at.spec.model.family;
  return cat("when model.family is \"", family, "\", whose objective is ",
             word(model::family_of(at.spec.model).traits.objective));
}

// The rule that a key keeps its default where the objective is causal.
template <class T>
CrossRule of_masked(const char* key, T DataSpec::*value, const char* text) {
  return {{key, "model.family"},
          [value](const View& at) { return is_masked(at.spec.model) || at.spec.data.*value == DataSpec().*value; },
          [text](const View& at) { return cat("must be ", text, " ", of_family(at)); }};
}

}  // namespace

std::vector<CrossRule> objective_rules() {
  return {
      {{"train.objective", "model.family"},
       [](const View& at) {
         const Objective objective = at.spec.train.objective;
         return objective == Objective::Auto || objective == model::family_of(at.spec.model).traits.objective;
       },
       [](const View& at) {
         return cat("must be \"auto\" or \"", word(model::family_of(at.spec.model).traits.objective), "\" ",
                    of_family(at));
       }},
      of_masked("data.sequences", &DataSpec::sequences, "\"packed\""),
      of_masked("data.mask_fraction", &DataSpec::mask_fraction, "left out"),
      {{"model.context", "model.family"},
       [](const View& at) { return !is_masked(at.spec.model) || at.spec.model.context >= kLeastContext; },
       [](const View& at) { return cat("must be at least ", kLeastContext, " ", of_family(at)); }},
      {{"model.experts", "model.family"},
       [](const View& at) { return !is_masked(at.spec.model) || at.spec.model.experts == 0; },
       [](const View& at) { return cat("must be 0 ", of_family(at)); }},
      {{"train.sample_prompt", "model.family"},
       [](const View& at) { return !is_masked(at.spec.model) || at.spec.train.sample_prompt.empty(); },
       [](const View& at) { return cat("must be empty ", of_family(at), ": it continues no text"); }},
  };
}

}  // namespace braid::spec
