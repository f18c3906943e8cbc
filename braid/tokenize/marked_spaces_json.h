// A tokenizer.json whose BPE falls back to bytes and marks spaces: what SentencePiece's models become.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "braid/tokenize/bpe_tokenizer.h"
#include "braid/tokenize/bpe_vocabulary.h"

namespace braid::tokenize {

// As bpe_of_json(). Source: the serialisation of huggingface/tokenizers 0.23.
BpeModel marked_spaces_of_json(const nlohmann::json& json, Faults& faults);

}  // namespace braid::tokenize
