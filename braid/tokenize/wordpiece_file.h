// WordPiece models in a tokenizer.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "braid/tokenize/faults.h"
#include "braid/tokenize/wordpiece_tokenizer.h"

namespace braid::tokenize {

// Returns true if the model of this tokenizer.json is WordPiece.
bool is_wordpiece(const nlohmann::json& json);

// Reads a tokenizer.json. Returns the model without its end-of-text token. Adds a fault for everything that changes
// tokens or text and is not supported. The model is unusable if there are faults. Post-processor, truncation and
// padding are ignored. REQUIRES: is_wordpiece(json). Source: the serialisation of huggingface/tokenizers 0.23.
WordPieceModel wordpiece_of_json(const nlohmann::json& json, Faults& faults);

// Returns the model as a tokenizer.json, which the Hugging Face library can also load. Its post-processor puts [CLS]
// before a text and [SEP] behind it if both are tokens. REQUIRES: the model has a normalizer and a decoding, and all
// its tokens are in the vocabulary.
std::string wordpiece_json(const WordPieceModel& model);

}  // namespace braid::tokenize
