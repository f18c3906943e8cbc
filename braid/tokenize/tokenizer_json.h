// Reads tokenizer.json: the parts that form tokens, refused where braid does not know them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "braid/tokenize/bpe_tokenizer.h"
#include "braid/tokenize/bpe_vocabulary.h"

namespace braid::tokenize {

// The model without its end-of-text token. Adds a fault for everything that changes tokens and is not supported; with
// faults, the model is worth nothing. Source: the serialisation of huggingface/tokenizers 0.23.
BpeModel bpe_of_json(const nlohmann::json& json, Faults& faults);

}  // namespace braid::tokenize
