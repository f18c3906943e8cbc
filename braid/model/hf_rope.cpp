// Reads and writes the keys of rotary positions.
#include "braid/model/hf_rope.h"

namespace braid::model {
namespace {

// Refuses a key of rotary positions with different values in two of its three places: the top level, "rope_scaling" and
// "rope_parameters".
void refuse_other_rope(const HfKeys& keys, const std::vector<HfKeys>& scaling, const std::vector<HfKeys>& parameters) {
  for (const auto& place : {scaling, parameters}) {
    for (const HfKeys& rope : place) {
      rope.agree("type", rope, "rope_type");
      for (const char* key : {"rope_theta", "original_max_position_embeddings", "partial_rotary_factor"})
        keys.agree(key, rope, key);
    }
  }
  if (scaling.empty() || parameters.empty()) return;
  const auto type_in = [](const HfKeys& rope) { return rope.find("rope_type") ? "rope_type" : "type"; };
  scaling[0].agree(type_in(scaling[0]), parameters[0], type_in(parameters[0]));
  for (const char* key : {"rope_theta", "factor", "low_freq_factor", "high_freq_factor",
                          "original_max_position_embeddings", "partial_rotary_factor"}) {
    scaling[0].agree(key, parameters[0], key);
  }
}

}  // namespace

void take_rope(const HfKeys& keys, ModelSpec& model) {
  const std::vector<HfKeys> scaling = keys.below("rope_scaling"), parameters = keys.below("rope_parameters");
  refuse_other_rope(keys, scaling, parameters);
  keys.need("partial_rotary_factor", 1.0);
  keys.take_number("rope_theta", model.rope_base);
  for (const auto& place : {scaling, parameters}) {
    for (const HfKeys& rope : place) {
      const char* type = rope.find("rope_type") ? "rope_type" : "type";
      rope.need_one_of(type, {"llama3", "default"});
      rope.take_number("rope_theta", model.rope_base);
      rope.need("partial_rotary_factor", 1.0);
      const nlohmann::json* value = rope.find(type);
      if (!value || *value != "llama3") continue;
      model.rope_scaling = RopeScaling::Llama3;
      for (const char* needed : {"factor", "low_freq_factor", "high_freq_factor"}) {
        if (!rope.find(needed)) rope.refuse(needed, "must be given");
      }
      rope.take_number("factor", model.rope_factor);
      rope.take_number("low_freq_factor", model.rope_low_frequency);
      rope.take_number("high_freq_factor", model.rope_high_frequency);
      const char* original = "original_max_position_embeddings";
      (rope.find(original) || !keys.find(original) ? rope : keys).take_size(original, model.rope_context);
    }
  }
}

void put_rope(const ModelSpec& spec, nlohmann::ordered_json& json) {
  json["rope_theta"] = spec.rope_base;
  if (spec.rope_scaling == RopeScaling::None) {
    json["rope_scaling"] = nullptr;
    return;
  }
  json["rope_scaling"] = {{"rope_type", "llama3"},
                          {"factor", spec.rope_factor},
                          {"low_freq_factor", spec.rope_low_frequency},
                          {"high_freq_factor", spec.rope_high_frequency},
                          {"original_max_position_embeddings", spec.rope_context}};
}

}  // namespace braid::model
