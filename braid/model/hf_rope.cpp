// Reads and writes the keys of rotary positions.
#include "braid/model/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace braid::model {
namespace {

constexpr const char *kOriginal = "original_max_position_embeddings", *kLongest = "max_position_embeddings";

// Refuses a key of rotary positions with different values in two of its three places: the top level, "rope_scaling" and
// "rope_parameters".
void refuse_other_rope(const HfKeys& keys, const std::vector<HfKeys>& scaling, const std::vector<HfKeys>& parameters) {
  for (const auto& place : {scaling, parameters}) {
    for (const HfKeys& rope : place) {
      rope.agree("type", rope, "rope_type");
      for (const char* key : {"rope_theta", kOriginal, "partial_rotary_factor"}) keys.agree(key, rope, key);
    }
  }
  if (scaling.empty() || parameters.empty()) return;
  const auto type_in = [](const HfKeys& rope) { return rope.find("rope_type") ? "rope_type" : "type"; };
  scaling[0].agree(type_in(scaling[0]), parameters[0], type_in(parameters[0]));
  for (const char* key : {"rope_theta", "factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow",
                          "attention_factor", "mscale", "mscale_all_dim", kOriginal, "partial_rotary_factor"}) {
    scaling[0].agree(key, parameters[0], key);
  }
}

void take_llama3(const HfKeys& rope, ModelSpec& model) {
  for (const char* needed : {"low_freq_factor", "high_freq_factor"}) {
    if (!rope.find(needed)) rope.refuse(needed, "must be given");
  }
  rope.take_number("low_freq_factor", model.rope_low_frequency);
  rope.take_number("high_freq_factor", model.rope_high_frequency);
}

// Without "attention_factor", the ratio of two magnitudes if both of their weights are given. Source: transformers,
// modeling_rope_utils, "yarn".
void take_yarn(const HfKeys& rope, ModelSpec& model) {
  rope.need("truncate", true);
  rope.take_number("beta_fast", model.rope_fast_turns);
  rope.take_number("beta_slow", model.rope_slow_turns);
  rope.take_number("attention_factor", model.rope_magnitude);
  if (rope.find("attention_factor") || !rope.find("mscale") || !rope.find("mscale_all_dim")) return;
  double above = 0, below = 0;
  rope.take_number("mscale", above);
  rope.take_number("mscale_all_dim", below);
  const double log_factor = std::log(std::max(model.rope_factor, 1.0)) / 10;
  model.rope_magnitude = (1 + above * log_factor) / (1 + below * log_factor);
}

// The length of the first training is that of the longest sequences where nothing else is said, and with "dynamic".
void take_scaling(const HfKeys& keys, const HfKeys& rope, ModelSpec& model) {
  const char* type = rope.find("rope_type") ? "rope_type" : "type";
  rope.need_one_of(type, {"llama3", "linear", "dynamic", "yarn", "default"});
  const nlohmann::json* value = rope.find(type);
  const auto kind = value && value->is_string() ? value_of<RopeScaling>(value->get<std::string>()) : std::nullopt;
  if (!kind || kind == RopeScaling::None) return;
  model.rope_scaling = *kind;
  if (!rope.find("factor")) rope.refuse("factor", "must be given");
  rope.take_number("factor", model.rope_factor);
  if (kind == RopeScaling::Llama3) take_llama3(rope, model);
  if (kind == RopeScaling::Yarn) take_yarn(rope, model);
  if (kind == RopeScaling::Linear) return;
  if (kind != RopeScaling::Llama3) model.rope_context = model.context;
  if (kind == RopeScaling::Dynamic) return;
  const HfKeys& place = rope.find(kOriginal) || !keys.find(kOriginal) ? rope : keys;
  if (kind == RopeScaling::Llama3 || place.find(kOriginal)) place.take_size(kOriginal, model.rope_context);
}

}  // namespace

void take_rope(const HfKeys& keys, ModelSpec& model) {
  const std::vector<HfKeys> scaling = keys.below("rope_scaling"), parameters = keys.below("rope_parameters");
  refuse_other_rope(keys, scaling, parameters);
  keys.need("partial_rotary_factor", 1.0);
  keys.take_number("rope_theta", model.rope_base);
  for (const auto& place : {scaling, parameters}) {
    for (const HfKeys& rope : place) {
      rope.take_number("rope_theta", model.rope_base);
      rope.need("partial_rotary_factor", 1.0);
      take_scaling(keys, rope, model);
    }
  }
}

void put_rope(const ModelSpec& spec, nlohmann::ordered_json& json) {
  json["rope_theta"] = spec.rope_base;
  nlohmann::ordered_json& rope = json["rope_scaling"] = nullptr;
  if (spec.rope_scaling == RopeScaling::None) return;
  rope = {{"rope_type", word(spec.rope_scaling)}, {"factor", spec.rope_factor}};
  switch (spec.rope_scaling) {
    case RopeScaling::None:
    case RopeScaling::Linear:
      break;
    case RopeScaling::Dynamic:
      json[kLongest] = spec.rope_context;
      break;
    case RopeScaling::Llama3:
      rope["low_freq_factor"] = spec.rope_low_frequency;
      rope["high_freq_factor"] = spec.rope_high_frequency;
      rope[kOriginal] = spec.rope_context;
      break;
    case RopeScaling::Yarn:
      rope["beta_fast"] = spec.rope_fast_turns;
      rope["beta_slow"] = spec.rope_slow_turns;
      if (spec.rope_magnitude > 0) rope["attention_factor"] = spec.rope_magnitude;
      rope[kOriginal] = spec.rope_context;
      break;
  }
}

}  // namespace braid::model
