// The keys of rotary positions in a config.json.
#pragma once

#include "braid/model/hf_keys.h"
#include "braid/model/model_spec.h"

namespace braid::model {

// Reads the rotary positions. "rope_parameters" also holds the base; the older "rope_scaling" does not.
void take_rope(const HfKeys& keys, ModelSpec& model);
void put_rope(const ModelSpec& spec, nlohmann::ordered_json& json);

}  // namespace braid::model
