// The writer of Hugging Face's config.json: the keys that all model types have. transformers 4 and 5 read it.
#include "braid/model/hf_config_text.h"

#include <nlohmann/json.hpp>

#include "braid/base/text.h"
#include "braid/model/families.h"

namespace braid::model {
std::string hf_config_text(const ModelSpec& spec, const HfConfigDetails& details, std::vector<Problem>& problems) {
  using OrderedJson = nlohmann::ordered_json;
  const HfConfig& config = family_of(spec).config;
  if (!config.type_of) {
    problems.push_back({"model.family", cat(spec.family), "must be a family that has a form at Hugging Face", ""});
    return "";
  }
  const HfModelType type = config.type_of(spec);
  if (spec.qk_norm && spec.qkv_bias) {
    problems.push_back(
        {"model.qkv_bias", "true", "must be false beside model.qk_norm: no model type has both", "false"});
  }
  if (spec.experts > 0) {
    problems.push_back({"model.experts", cat(spec.experts), "must be 0: no experts are written", "0"});
  }
  OrderedJson json;
  json["architectures"] = {details.has_carried && type.with_carried ? type.with_carried : type.architecture};
  json["model_type"] = type.name;
  json["vocab_size"] = spec.vocab;
  config.put(spec, json);
  json["initializer_range"] = spec.init_std;
  json["tie_word_embeddings"] = spec.output_weights == OutputWeights::Tied;
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = details.end_of_text ? OrderedJson(*details.end_of_text) : OrderedJson();
  json["torch_dtype"] = details.type;
  json["use_cache"] = true;
  return json.dump(2) + "\n";
}

}  // namespace braid::model
