// The rules between the fields of a model. The rules of its layout on the mesh are elsewhere (cross_rules.cpp).
#include <algorithm>

#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/model/family_problems.h"
#include "braid/model/shape.h"
#include "braid/spec/cross_rules.h"

namespace braid::spec {
namespace {

bool scaled_by(const View& at, RopeScaling scaling) { return at.spec.model.rope_scaling == scaling; }

// Refuses a spec that still names a preset or a config: it was never resolved, so its sizes are not the requested ones.
CrossRule resolved(const char* key, std::string ModelSpec::*name) {
  return {{key},
          [name](const View& at) { return (at.spec.model.*name).empty(); },
          [](const View&) { return std::string("must be empty here: parse_run() or described_model() resolves it"); }};
}

// The rule that a key keeps its default in a family whose heads have none of these forms.
template <class T>
CrossRule of_heads(const char* key, T ModelSpec::*figure, std::vector<model::HeadForm> forms) {
  return {{key, "model.family"},
          [figure, forms](const View& at) {
            return at.spec.model.*figure == T() ||
                   std::ranges::count(forms, model::family_of(at.spec.model).traits.heads) > 0;
          },
          [](const View& at) {
            const char* none = std::is_same_v<T, bool> ? "false" : "0";
            return cat("must be ", none, " when model.family is \"", at.spec.model.family, "\"");
          }};
}

// Returns the keys from which a family makes its blocks.
Strings family_keys() {
  return {"model.family", "model.layers",     "model.heads",   "model.kv_heads",
          "model.width",  "model.head_width", "model.context", "model.ffn"};
}

using Mistakes = std::vector<std::string> (*)(const ModelSpec& spec, const model::Family& family);

// Returns the mistakes of the blocks of a family that the program has added.
std::vector<std::string> mistakes(const ModelSpec& spec, Mistakes find) {
  if (!model::is_added(spec.family) || spec.heads < 1 || model::num_kv_heads(spec) < 1) return {};
  const bool have_width = spec.head_width > 0 || spec.width % spec.heads == 0;
  if (!have_width || spec.heads % model::num_kv_heads(spec) != 0) return {};
  return find(spec, model::family_of(spec));
}

CrossRule sound_family() {
  return {family_keys(), [](const View& at) { return mistakes(at.spec.model, model::problems_of_family).empty(); },
          [](const View& at) {
            return cat("must have sound blocks: ", joined(mistakes(at.spec.model, model::problems_of_family), "; "));
          }};
}

CrossRule sound_on_tensor_ranks() {
  const auto found = [](const View& at) { return mistakes(at.spec.model, model::problems_on_tensor_ranks); };
  Strings keys = family_keys();
  keys.insert(keys.begin(), "mesh.tensor");
  return {keys, [found](const View& at) { return at.spec.mesh.tensor == 1 || found(at).empty(); },
          [found](const View& at) {
            return cat("must be 1 for the blocks of \"", at.spec.model.family, "\": ", joined(found(at), "; "));
          }};
}

CrossRule sound_on_split_tokens() {
  const auto found = [](const View& at) { return mistakes(at.spec.model, model::problems_on_split_tokens); };
  Strings keys = family_keys();
  keys.insert(keys.begin(), "mesh.sequence_parallel");
  return {keys, [found](const View& at) { return !at.spec.mesh.sequence_parallel || found(at).empty(); },
          [found](const View& at) {
            return cat("must be false for the blocks of \"", at.spec.model.family, "\": ", joined(found(at), "; "));
          }};
}

CrossRule sound_on_parts_of_sequences() {
  const auto found = [](const View& at) { return mistakes(at.spec.model, model::problems_on_parts_of_sequences); };
  Strings keys = family_keys();
  keys.insert(keys.begin(), "mesh.context");
  return {keys, [found](const View& at) { return at.spec.mesh.context == 1 || found(at).empty(); },
          [found](const View& at) {
            return cat("must be 1 for the blocks of \"", at.spec.model.family, "\": ", joined(found(at), "; "));
          }};
}

}  // namespace

std::vector<CrossRule> model_rules() {
  constexpr auto kFree = model::HeadForm::Free, kCapped = model::HeadForm::Capped;
  return {
      sound_family(),
      sound_on_tensor_ranks(),
      sound_on_split_tokens(),
      sound_on_parts_of_sequences(),
      resolved("model.preset", &ModelSpec::preset),
      resolved("model.config", &ModelSpec::config),
      of_heads("model.head_width", &ModelSpec::head_width, {kFree, kCapped}),
      of_heads("model.qkv_bias", &ModelSpec::qkv_bias, {kFree}),
      of_heads("model.qk_norm", &ModelSpec::qk_norm, {kFree}),
      of_heads("model.window", &ModelSpec::window, {kFree, kCapped}),
      of_heads("model.attention_cap", &ModelSpec::attention_cap, {kCapped}),
      of_heads("model.logit_cap", &ModelSpec::logit_cap, {kCapped}),
      of_heads("model.query_scalar", &ModelSpec::query_scalar, {kCapped}),
      {{"model.attention_cap", "train.device"},
       [](const View& at) { return at.spec.model.attention_cap == 0 || at.spec.train.device == DeviceKind::Cpu; },
       [](const View&) { return std::string("must be 0 with train.device = \"cuda\": its kernel is for CPUs"); }},
      {{"model.head_width"},
       [](const View& at) { return at.spec.model.head_width % 2 == 0; },
       [](const View&) { return std::string("must be an even number, since features are rotated in pairs"); }},
      {{"model.experts_per_token", "model.experts"},
       [](const View& at) { return at.spec.model.experts > 0 || at.spec.model.experts_per_token == 1; },
       [](const View&) { return std::string("must be 1 where model.experts is 0"); }},
      {{"model.experts_per_token", "model.experts"},
       [](const View& at) { return model::branches_per_token(at.spec.model) <= std::max(at.spec.model.experts, 1); },
       [](const View& at) { return cat("must be at most model.experts (", at.spec.model.experts, ")"); }},
      {{"model.rope_scaling", "model.family"},
       [](const View& at) {
         return scaled_by(at, RopeScaling::None) ||
                model::family_of(at.spec.model).traits.positions == model::PositionKind::Rotary;
       },
       [](const View& at) { return cat("must be \"none\" when model.family is \"", at.spec.model.family, "\""); }},
      {{"model.rope_high_frequency", "model.rope_low_frequency", "model.rope_scaling"},
       [](const View& at) {
         return !scaled_by(at, RopeScaling::Llama3) ||
                at.spec.model.rope_high_frequency > at.spec.model.rope_low_frequency;
       },
       [](const View& at) {
         return cat("must be more than model.rope_low_frequency (", exact(at.spec.model.rope_low_frequency), ")");
       }},
      {{"model.rope_fast_turns", "model.rope_slow_turns", "model.rope_scaling"},
       [](const View& at) {
         return !scaled_by(at, RopeScaling::Yarn) || at.spec.model.rope_fast_turns > at.spec.model.rope_slow_turns;
       },
       [](const View& at) {
         return cat("must be more than model.rope_slow_turns (", exact(at.spec.model.rope_slow_turns), ")");
       }},
      {{"model.head_width", "model.rope_scaling"},
       [](const View& at) { return !scaled_by(at, RopeScaling::Dynamic) || model::head_width(at.spec.model) > 2; },
       [](const View&) { return std::string("must be more than 2 with model.rope_scaling = \"dynamic\""); }},
  };
}

}  // namespace braid::spec
