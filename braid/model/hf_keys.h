// Reads the keys of a config.json one by one and collects their problems.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/model_spec.h"
#include "braid/model/shape.h"

namespace braid::model {

// An object of the file. A key that is null counts as missing, except in take_size_or() and take_cap().
class HfKeys {
 public:
  HfKeys(const nlohmann::json& object, std::string prefix, std::vector<Problem>& problems)
      : object_(object), prefix_(std::move(prefix)), problems_(problems) {}

  const nlohmann::json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void refuse(const char* key, const std::string& rule, const std::string& nearest = "") const {
    const nlohmann::json* value = find(key);
    problems_.push_back({prefix_ + key,
                         value ? value->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) : "", rule,
                         nearest});
  }

  // Adds a problem if a key that may be in two places of the file has different values there. transformers silently
  // uses one of them.
  void agree(const char* key, const HfKeys& other, const char* other_key) const {
    const nlohmann::json *here = find(key), *there = other.find(other_key);
    if (!here || !there || *here == *there) return;
    refuse(key, cat("must be equal to ", other.prefix_, other_key, ", which is ",
                    there->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)));
  }
  // Reads a size under its own name or under its alias in transformers' attribute_map.
  void take_named_size(const char* key, const char* alias, int& to) const {
    agree(alias, *this, key);
    take_size(find(key) || !find(alias) ? key : alias, to);
  }

  // Reads a size that must be given.
  void take_size(const char* key, int& to) const {
    if (find(key)) return take_optional_size(key, to);
    refuse(key, "must be given");
  }
  // Reads the sizes that most classes have, under the same names.
  void take_sizes(ModelSpec& model) const {
    take_size("vocab_size", model.vocab);
    take_size("max_position_embeddings", model.context);
    take_size("hidden_size", model.width);
    take_size("intermediate_size", model.ffn);
    take_size("num_hidden_layers", model.layers);
    take_size("num_attention_heads", model.heads);
  }
  void take_optional_size(const char* key, int& to) const {
    const nlohmann::json* value = find(key);
    if (!value) return;
    const bool fits = value->is_number_integer() && *value >= 1 && *value <= std::numeric_limits<int>::max();
    if (!fits) return refuse(key, "must be an integer, at least 1");
    to = value->get<int>();
  }
  // Reads an optional size. null gives 0. A missing key gives `unless_given`, the default of the family's own code.
  void take_size_or(const char* key, int unless_given, int& to) const {
    to = object_.contains(key) ? 0 : unless_given;
    take_optional_size(key, to);
  }
  void take_number(const char* key, double& to) const {
    const nlohmann::json* value = find(key);
    if (!value) return;
    if (!value->is_number() || !(value->get<double>() > 0)) return refuse(key, "must be a number more than 0");
    to = value->get<double>();
  }
  // Reads a number that null turns off: it gives 0.
  void take_cap(const char* key, double& to) const {
    if (object_.contains(key) && object_.at(key).is_null()) to = 0;
    take_number(key, to);
  }
  bool flag(const char* key, bool unless_given) const {
    const nlohmann::json* value = find(key);
    if (value && !value->is_boolean()) refuse(key, "must be true or false");
    return value && value->is_boolean() ? value->get<bool>() : unless_given;
  }
  // Adds a problem if the key has a value other than `needed`. The key may be missing.
  void need(const char* key, const nlohmann::json& needed) const {
    const nlohmann::json* value = find(key);
    if (value && *value != needed)
      refuse(key, "must be " + needed.dump() + ", since braid computes nothing else", needed.dump());
  }
  void need_one_of(const char* key, const std::vector<std::string>& words) const {
    const nlohmann::json* value = find(key);
    if (!value) return;
    std::vector<std::string> quoted;
    for (const auto& word : words) {
      if (*value == word) return;
      quoted.push_back(quoted_text(word));
    }
    refuse(key, cat("must be one of ", joined(quoted)), quoted[0]);
  }
  // Returns the object under `key` as the only entry; returns no entry if there is no such object.
  std::vector<HfKeys> below(const char* key) const {
    const nlohmann::json* value = find(key);
    if (!value) return {};
    if (value->is_object()) return {HfKeys(*value, prefix_ + key + ".", problems_)};
    refuse(key, "must be an object");
    return {};
  }

 private:
  const nlohmann::json& object_;
  std::string prefix_;
  std::vector<Problem>& problems_;
};

// Writes the sizes that HfKeys::take_sizes() reads, but for the vocabulary.
inline void put_sizes(const ModelSpec& spec, nlohmann::ordered_json& json) {
  json["max_position_embeddings"] = spec.context;
  json["hidden_size"] = spec.width;
  json["intermediate_size"] = ffn_width(spec);
  json["num_hidden_layers"] = spec.layers;
  json["num_attention_heads"] = spec.heads;
}

}  // namespace braid::model
